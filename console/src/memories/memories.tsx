import "./memories.css";

import type { ViewProps } from "../app";
import { Documents, DocumentText } from "./documents";
import { Forget } from "./forget";
import { MemoryList } from "./list";
import { NewMemory } from "./memory_form";
import { MemoryPage } from "./memory_page";
import { Session } from "./session";

/** The memories of a namespace: as a list, one by one, as chats and as documents. Paths only contain ids. */
export function Memories({ namespace, route, listing: { reload } }: ViewProps) {
  const { id, query } = route;
  const session = query.get("session");
  const document = query.get("document");
  const page = query.get("page");
  if (id) return <MemoryPage key={id} namespace={namespace} id={id} onChanged={reload} />;
  if (page === "new") return <NewMemory namespace={namespace} supersedes={query.get("supersedes")} onStored={reload} />;
  if (page === "documents") return <Documents namespace={namespace} />;
  if (page === "forget") return <Forget namespace={namespace} onForgotten={reload} />;
  if (session) return <Session key={session} namespace={namespace} session={session} />;
  if (document) return <DocumentText key={document} namespace={namespace} document={document} />;
  return <MemoryList namespace={namespace} query={query} onChanged={reload} />;
}
