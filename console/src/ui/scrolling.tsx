import type { ComponentChildren } from "preact";

/** A table that scrolls if it does not fit, also by keyboard. */
export function Scrolling({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scrolling" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
