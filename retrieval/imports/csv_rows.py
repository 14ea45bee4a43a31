"""CSV with a header line, whatever its separator."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from retrieval.errors import InvalidInput
from retrieval.imports.columns import columns_of, memory_of_row
from retrieval.imports.files import ImportFile
from retrieval.imports.records import ImportContext, Records, RepeatableIds, SkippedRecord, refused

FILES = ("*.csv", "*.tsv")

_SEPARATORS = ",;\t|"
_MAX_FIELD_CHARS = 16 * 1024**2

_END = "\x00"
"""Read as the line after the last: within a field only if nothing closes its quote."""


def recognise(source: ImportFile, context: ImportContext) -> bool:
    """Whether its first line has a usual name for the text's column, and other columns."""
    if not any(source.parts(*FILES)):
        return False
    head = source.part(*FILES).text(context).read(4_000)
    try:
        header = next(csv.reader([_header_in(head)], delimiter=_separator(head)), [])
        return len(header) > 1 and "text" in columns_of(dict.fromkeys(header, ""), context.columns)
    except (csv.Error, InvalidInput):
        return False


def read(source: ImportFile, context: ImportContext) -> Records:
    """The rows; raises InvalidInput if no column has the text, or one that the user gave does not exist."""
    separator = _separator(source.part(*FILES).text(context).read(4_000))
    csv.field_size_limit(_MAX_FIELD_CHARS)
    rows = _rows((line.replace(_END, "") for line in source.part(*FILES).text(ImportContext())), separator)
    _, header = next(rows, (0, None))
    if header == ["sep=", ""]:
        _, header = next(rows, (0, None))
    if header is None or isinstance(header, InvalidInput):
        raise header or InvalidInput("the file is empty")
    if twice := [name for name, count in Counter(header).items() if name and count > 1]:
        raise InvalidInput(f"the header names a column twice: {', '.join(twice)}")
    if "text" not in columns_of(dict.fromkeys(header, ""), context.columns):
        raise InvalidInput(f"no column has the text: {', '.join(header)}; name it with --map text=COLUMN")
    ids = RepeatableIds("csv")
    for line, row in rows:
        place = f"line {line}"
        if isinstance(row, InvalidInput):
            yield refused(place, row, line)
        elif not any(row):
            yield SkippedRecord(place=place, reason="empty row")
        elif len(row) != len(header):
            yield refused(place, f"has {len(row)} columns where the header has {len(header)}", line)
        else:
            yield memory_of_row(dict(zip(header, row, strict=True)), place, line, context, ids)


def _rows(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str] | InvalidInput]]:
    """The rows, each after the number of its last line.

    A broken one does not end the reading; it is named by its first line.
    """
    reader = csv.reader(chain(lines, [_END]), delimiter=separator)
    while True:
        first = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as exc:
            yield first, InvalidInput(f"broken CSV: {exc}")
            continue
        if row == [_END]:
            return
        if row and row[-1].endswith(_END):
            yield first, InvalidInput("broken CSV: a quote is never closed, so this row takes the rest of the file")
        else:
            yield reader.line_num, row


def _header_in(head: str) -> str:
    """The first line, or the second if the first one tells Excel the separator, as in "sep=;"."""
    return next((line for line in head.splitlines()[:2] if not line.startswith("sep=")), "")


def _separator(head: str) -> str:
    """The most frequent separator in the header."""
    return max(_SEPARATORS, key=_header_in(head).count)
