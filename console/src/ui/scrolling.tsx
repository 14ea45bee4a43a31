import type { ComponentChildren } from "preact";

/** A table that scrolls sideways where it does not fit, by keyboard too. */
export function Scrolling({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scrolling" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
