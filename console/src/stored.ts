// State in the browser, kept between visits (localStorage) or until the tab is closed (sessionStorage).

import { useState } from "preact/hooks";

/** State that outlives the view; a value of an unexpected shape is dropped. */
export function useStored<T>(storage: Storage, name: string, initial: T): [T, (change: (stored: T) => T) => void] {
  const read = (): T => {
    try {
      return (JSON.parse(storage.getItem(`trivet.${name}`) ?? "null") as T | null) ?? initial;
    } catch {
      return initial;
    }
  };
  const [value, setValue] = useState<T>(read);
  // Read again: another tab may have changed it.
  const store = (change: (stored: T) => T): void => {
    const next = change(read());
    storage.setItem(`trivet.${name}`, JSON.stringify(next));
    setValue(next);
  };
  return [value, store];
}
