// Metadata exactly as stored: JavaScript would change integers beyond 2^53, and 1.0, when writing them back.

import { type Call, callText } from "../api";

declare global {
  /** In all browsers since 2025; TypeScript does not know it yet. */
  interface JSON {
    parse(text: string, reviver: (key: string, value: unknown, context?: { source: string }) => unknown): unknown;
    rawJSON?(text: string): unknown;
  }
}

/** Parse JSON so that `JSON.stringify` writes its numbers as they were, if the browser can. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && context && JSON.rawJSON && (String(value) !== context.source || isRounded(value))
      ? JSON.rawJSON(context.source)
      : value,
  );
}

/** `call` for values that may be written back. */
export async function callExactly<T>(path: string, options?: Call): Promise<T> {
  return parseExactly(await callText(path, options)) as T;
}

/** Whether an integer of it may have been changed in parsing, as older browsers do. */
export function isRounded(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).some(isRounded);
  return Number.isInteger(value) && !Number.isSafeInteger(value);
}
