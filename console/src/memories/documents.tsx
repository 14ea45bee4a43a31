import { useMemo } from "preact/hooks";

import { call, within } from "../api";
import { counted, day } from "../format";
import { useLoaded } from "../loading";
import { readPage, usePages } from "../pages";
import { href } from "../route";
import { Pending } from "../ui/pending";
import { MoreButton } from "./more_button";

interface DocumentInfo {
  id: string;
  title: string | null;
  created_at: string;
  chunks: number;
}

interface Document extends Omit<DocumentInfo, "chunks"> {
  text: string;
  chunks: { id: string; position: number; headings: string[]; start: number; end: number }[];
}

/** The documents of a namespace. */
export function Documents({ namespace }: { namespace: string }) {
  const pages = usePages<DocumentInfo>((cursor, signal) =>
    readPage(namespace, "documents", { limit: 100, cursor }, signal),
  );
  return (
    <div class="page">
      <p class="row links">
        <a href={href(namespace, "memories")}>All memories</a>
      </p>
      <h1>Documents</h1>
      {pages.isEmpty && (
        <p class="soft">
          No documents yet. Import one: <code>trivet import handbook.md -n {namespace}</code>.
        </p>
      )}
      <ul class="memory-list" aria-label="Documents" aria-busy={pages.isLoading} ref={pages.list}>
        {pages.rows.map(({ id, title, created_at, chunks }) => (
          <li key={id} class="row spread">
            <a href={href(namespace, "memories", "", { document: id })}>{title ?? id}</a>
            <span class="hint">
              {counted(chunks, "chunk", "chunks")}, {day(created_at)}
            </span>
          </li>
        ))}
      </ul>
      <Pending of={pages} />
      <MoreButton pages={pages} />
    </div>
  );
}

/** A document's text with the boundaries of its chunks. */
export function DocumentText({ namespace, document }: { namespace: string; document: string }) {
  const loaded = useLoaded(
    (signal) => call<Document>(within(namespace, "documents", document), { signal }),
    [namespace, document],
  );
  const { data } = loaded;
  // The server counts characters, JavaScript UTF-16 code units.
  const characters = useMemo(() => Array.from(data?.text ?? ""), [data]);
  return (
    <div class="page document">
      <p class="row links">
        <a href={href(namespace, "memories", "", { page: "documents" })}>All documents</a>
        <a href={href(namespace, "memories", "", { in_document: document })}>View as list</a>
      </p>
      <h1>{data?.title ?? document}</h1>
      <Pending of={loaded} />
      <ol class="chunks">
        {data?.chunks.map(({ id, headings, start, end }) => (
          <li key={id}>
            <p class="hint">
              <a href={href(namespace, "memories", id)}>{id}</a> {headings.join(" › ")}
            </p>
            <p class="chunk-text">{characters.slice(start, end).join("")}</p>
          </li>
        ))}
      </ol>
    </div>
  );
}
