import { href } from "../route";

/** What to do if a namespace has no memories. */
export function NoneYet({ namespace }: { namespace: string }) {
  return (
    <p class="soft">
      No memories yet. <a href={href(namespace, "memories", "", { page: "new" })}>Add one</a>, or import a file:{" "}
      <code>trivet import chat.json -n {namespace}</code>.
    </p>
  );
}
