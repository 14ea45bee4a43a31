import type { ComponentChildren, HTMLAttributes } from "preact";

interface Row {
  key: string | number;
  cells: readonly ComponentChildren[];
  /** Of the row's element. */
  attributes?: HTMLAttributes<HTMLTableRowElement>;
}

interface Props {
  /** A title that begins with `#` stands over numbers, at the right; one in parentheses is unseen, an empty one none. */
  columns: readonly string[];
  rows: readonly Row[];
  /** Whether the first cell of each row is its heading. */
  isHeaded?: boolean;
}

export function Table({ columns, rows, isHeaded = false }: Props) {
  const classes = columns.map((title) => (title.startsWith("#") ? "number" : undefined));
  return (
    <table>
      <thead>
        <tr>
          {columns.map((title, i) =>
            title === "" ? (
              <td key={title} />
            ) : (
              <th key={title} scope="col" class={classes[i]}>
                {title.startsWith("(") ? <span class="visually-hidden">{title.slice(1, -1)}</span> : title.replace("#", "")}
              </th>
            ),
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells, attributes }) => (
          <tr key={key} {...attributes}>
            {cells.map((cell, i) =>
              isHeaded && i === 0 ? (
                <th key={i} scope="row">
                  {cell}
                </th>
              ) : (
                <td key={i} class={classes[i]}>
                  {cell}
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
