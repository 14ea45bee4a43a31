import type { ComponentChildren, HTMLAttributes } from "preact";

/** The title of a column, possibly empty; right-aligned over numbers; or for screen readers only. */
type Column = string | { title: string; isNumber?: boolean; isUnseen?: boolean };

interface Row {
  key: string | number;
  cells: readonly ComponentChildren[];
  /** Attributes of the row's element. */
  attributes?: HTMLAttributes<HTMLTableRowElement>;
}

interface Props {
  columns: readonly Column[];
  rows: readonly Row[];
  /** Whether the first cell of each row is its heading. */
  isHeaded?: boolean;
}

/** Columns of numbers. */
export function numbers(...titles: string[]): Column[] {
  return titles.map((title) => ({ title, isNumber: true }));
}

export function Table({ columns, rows, isHeaded = false }: Props) {
  const heads = columns.map((column) => (typeof column === "string" ? { title: column } : column));
  const classes = heads.map(({ isNumber }) => (isNumber ? "number" : undefined));
  return (
    <table>
      <thead>
        <tr>
          {heads.map(({ title, isUnseen }, i) =>
            title === "" ? (
              <td key={i} />
            ) : (
              <th key={i} scope="col" class={classes[i]}>
                {isUnseen ? <span class="visually-hidden">{title}</span> : title}
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
