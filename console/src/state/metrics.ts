// Parses the Prometheus text of /metrics.

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^(\w+)(?:\{(.*)\})? ([^ ]+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const match = LINE.exec(line);
    if (!match || line.startsWith("#")) continue;
    const labels = Object.fromEntries([...(match[2] ?? "").matchAll(LABEL)].map(([, name, value]) => [name!, value!]));
    samples.push({ name: match[1]!, labels, value: Number(match[3]) });
  }
  return samples;
}

export interface Timing {
  label: string;
  count: number;
  meanMs: number;
  /** Upper bounds of the buckets that contain the median and the 95th percentile. */
  p50Ms: number;
  p95Ms: number;
}

/** A histogram's counts, means and quantiles by one label (or several, joined). */
export function timings(samples: Sample[], metric: string, label: (labels: Record<string, string>) => string): Timing[] {
  const groups = new Map<string, { buckets: Map<number, number>; sum: number; count: number }>();
  for (const { name, labels, value } of samples) {
    if (!name.startsWith(metric)) continue;
    const key = label(labels);
    const group = groups.get(key) ?? { buckets: new Map(), sum: 0, count: 0 };
    groups.set(key, group);
    const end = name.slice(metric.length);
    if (end === "_sum") group.sum += value;
    if (end === "_count") group.count += value;
    const bound = labels["le"] === "+Inf" ? Infinity : Number(labels["le"]);
    if (end === "_bucket") group.buckets.set(bound, (group.buckets.get(bound) ?? 0) + value);
  }
  return [...groups].filter(([, { count }]) => count > 0).map(([key, { buckets, sum, count }]) => {
    const bounds = [...buckets].sort(([a], [b]) => a - b);
    const below = (share: number): number => 1000 * (bounds.find(([, n]) => n >= share * count)?.[0] ?? Infinity);
    return { label: key, count, meanMs: (1000 * sum) / count, p50Ms: below(0.5), p95Ms: below(0.95) };
  });
}

export function total(samples: Sample[], name: string, labels: Record<string, string> = {}): number {
  const matches = (sample: Sample): boolean =>
    sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value);
  return samples.filter(matches).reduce((sum, { value }) => sum + value, 0);
}
