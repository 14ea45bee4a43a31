"""Answers as tables, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import Any

_CHARS_SHOWN = 200


class Tabular:
    """An answer with rows, which Jupyter shows as a table and pandas can read."""

    __slots__ = ()

    def table_rows(self) -> Sequence[dict[str, Any]]:
        """The rows: values by column, the same columns in each."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ModuleNotFoundError as exc:
            raise ModuleNotFoundError("to_pandas() needs pandas: pip install pandas", name="pandas") from exc
        return pandas.DataFrame(list(self.table_rows()))

    def _repr_html_(self) -> str:
        """The rows as an HTML table; long texts are cut."""
        rows = self.table_rows()
        if not rows:
            return "<p>nothing found</p>"
        head = "".join(f"<th>{escape(column)}</th>" for column in rows[0])
        body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row.values())}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    """A value as escaped text.

    >>> _cell("<b>"), _cell(0.016351), _cell(None)
    ('&lt;b&gt;', '0.0164', '')
    """
    text = "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
    return escape(text if len(text) <= _CHARS_SHOWN else text[: _CHARS_SHOWN - 1] + "…")
