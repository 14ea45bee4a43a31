// Numbers and times as the console writes them.

const NUMBER = new Intl.NumberFormat("en-GB");
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const DAY_MS = 86_400_000;
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });

export const count = (value: number): string => NUMBER.format(value);
export const percent = (share: number): string => `${Math.round(share * 100)}%`;
export const day = (time: string): string => DAY.format(new Date(time));
export const clock = (time: string): string => TIME.format(new Date(time));
export const dayAndTime = (time: string): string => `${day(time)}, ${clock(time)}`;

/** The first moment of a date field's value; undefined for an empty one. */
export const midnight = (date: string): string | undefined => (date ? `${date}T00:00:00Z` : undefined);

/** The day a number of days after another; invalid days are left for the server to refuse. */
export function plusDays(day: string, n: number): string {
  const time = Date.parse(`${day}T00:00:00Z`);
  return Number.isNaN(time) ? day : new Date(time + n * DAY_MS).toISOString().slice(0, 10);
}

/** The API's bounds are exclusive: anything created from a date on is created after this moment. */
export const justBefore = (date: string): string => `${plusDays(date, -1)}T23:59:59.999999Z`;

/** 1 as "1st". */
export function ordinal(n: number): string {
  const ending = n % 100 > 10 && n % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${n}${ending}`;
}

/** "1 memory", "2 memories". */
export const counted = (n: number, one: string, many: string): string => `${count(n)} ${n === 1 ? one : many}`;

/** A text without its speaker's name, with which a chat turn may begin. */
export function withoutName(text: string, speaker: string | null): string {
  return speaker && text.startsWith(`${speaker}: `) ? text.slice(speaker.length + 2) : text;
}

export const milliseconds = (ms: number): string => (ms < 10 ? `${ms.toFixed(1)} ms` : `${count(Math.round(ms))} ms`);
