export const signed = (value: number): string => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;

interface Props {
  difference: number;
  low: number;
  high: number;
  reach: number;
}

/** A difference with its confidence interval on an axis with zero in the middle, that goes `reach` to each side. */
export function Interval({ difference, low, high, reach }: Props) {
  const x = (value: number): number => 60 + (reach ? value / reach : 0) * 56;
  return (
    <svg class="interval" width="120" height="16" aria-hidden="true">
      <line x1="60" x2="60" y1="1" y2="15" class="zero" />
      <line x1={x(low)} x2={x(high)} y1="8" y2="8" />
      <circle cx={x(difference)} cy="8" r="3.5" />
    </svg>
  );
}
