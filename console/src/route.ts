// The current place, kept in the address after `#`: #/NAMESPACE/VIEW/ID?name=value

import { useEffect, useMemo, useState } from "preact/hooks";

export interface Route {
  namespace: string;
  view: string;
  id: string;
  query: URLSearchParams;
}

/** Parse an address that may have been typed by hand: a badly escaped part is taken literally. */
function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Names as one parameter of an address, whatever is in them. */
export const joined = (names: string[]): string => names.map(encodeURIComponent).join("|");
export const parted = (names: string): string[] => names.split("|").map(unescaped);

export function parseRoute(hash: string): Route {
  const [, path = "", query = ""] = /^#?\/?([^?]*)\??(.*)$/.exec(hash) ?? [];
  const [namespace = "", view = "", ...id] = path.split("/").map(unescaped);
  return { namespace, view: view || "ask", id: id.join("/"), query: new URLSearchParams(query) };
}

/** A link's target. */
export function href(namespace: string, view: string, id = "", query: Record<string, string> = {}): string {
  const path = [namespace, view, ...(id ? [id] : [])].map(encodeURIComponent).join("/");
  const search = new URLSearchParams(query).toString();
  return `#/${path}${search ? `?${search}` : ""}`;
}

export function go(target: string): void {
  location.hash = target;
}

let isUnsaved = false;

/** Whether the page has text that would be lost if it were left, which then asks first. */
export function setUnsaved(is: boolean): void {
  isUnsaved = is;
}

/** The number of the current entry in the history; unknown to browsers without the Navigation API. */
const entryIndex = (): number | undefined => window.navigation?.currentEntry?.index;

export function useRoute(): Route {
  const [{ hash }, show] = useState({ hash: location.hash });
  useEffect(() => {
    let [shown, index] = [location.hash, entryIndex()];
    const follow = (): void => {
      const now = entryIndex();
      if (isUnsaved && location.hash !== shown && !confirm("Leave without saving what you have written?")) {
        // The browser has left already.
        if (now === undefined) history.pushState(null, "", shown);
        else history.go(index! - now);
      } else [shown, index] = [location.hash, now];
      show({ hash: shown }); // again if declined: a field may show the other namespace
    };
    const leave = (event: Event): void => {
      if (isUnsaved) event.preventDefault();
    };
    addEventListener("hashchange", follow);
    addEventListener("beforeunload", leave);
    return () => {
      removeEventListener("hashchange", follow);
      removeEventListener("beforeunload", leave);
    };
  }, []);
  return useMemo(() => parseRoute(hash), [hash]);
}
