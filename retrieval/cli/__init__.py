"""The command line. Commands are imported when they are called, so that `trivet --help` is quick."""

from __future__ import annotations

from retrieval.cli.group import TrivetGroup

main = TrivetGroup(
    name="trivet",
    help="Retrieval for assistants and chat memory: vector, BM25 and entity graph, weighted by the query's intent.",
    epilog="Settings come from TRIVET_* variables; TRIVET_LOG_LEVEL=debug shows the traceback of a failure.",
)
