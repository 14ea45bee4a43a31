/** Whether the focus may move: it is on a link of the bar on top, or on nothing, as what had it is gone. */
export const isFocusFree = (): boolean => document.activeElement!.matches("body, .bar a");
