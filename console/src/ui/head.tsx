/** The head of a table. A title that begins with `#` stands over numbers, at the right; an empty one is no heading. */
export function Head({ columns }: { columns: readonly string[] }) {
  return (
    <thead>
      <tr>
        {columns.map((title) =>
          title === "" ? (
            <td key={title} />
          ) : (
            <th key={title} scope="col" class={title.startsWith("#") ? "number" : undefined}>
              {title.replace("#", "")}
            </th>
          ),
        )}
      </tr>
    </thead>
  );
}
