/** Whether the focus may move: it is on a link that was followed, or on nothing, as what had it is gone. */
export const isFocusFree = (): boolean => document.activeElement!.matches("body, a");
