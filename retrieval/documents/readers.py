"""Reads text from files; run as a program, it does so in a separate process with bounded time and memory.

`python -m retrieval.documents.readers pdf` reads a file from standard input and writes a `Reading` as JSON.
"""

from __future__ import annotations

import logging
import resource
import sys
from importlib import import_module

import msgspec

from retrieval.documents.reading import Reading, check_length, storable
from retrieval.errors import InvalidInput

MAX_MEMORY_BYTES = 2 * 1024**3
MAX_CPU_S = 120

MOST_REASON_CHARS = 200
"""Of a library's message, which may quote the file."""


def confine() -> None:
    """Limit the time and memory of this process, and silence its log, which may quote the file."""
    logging.disable()
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
    if sys.platform == "linux":  # elsewhere the limit is not enforced, or counts memory that is only mapped
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


def main() -> None:
    """Read standard input as the form in the argument; any failure is reported as a fault of the file."""
    name, content = sys.argv[1], sys.stdin.buffer.read()
    try:
        module = name if name in ("html", "notebook", "pdf") else "zipped"
        reader = import_module(f".{module}", __package__)  # imports the libraries for this form only
        reading = storable(getattr(reader, f"read_{name}")(content))
        check_length(reading.text)  # here, before the server has to hold all of it
    except InvalidInput as exc:
        reading = Reading(error=str(exc))
    except ModuleNotFoundError as exc:
        reading = Reading(error=f"cannot be read here without {exc.name}: pip install 'trivet[documents]'")
    except MemoryError:
        reading = Reading(error=f"takes more than {MAX_MEMORY_BYTES // 1024**3} GiB of memory to read")
    except RecursionError:
        reading = Reading(error="cannot be read: its parts are nested too deeply")
    except Exception as exc:
        reading = Reading(
            error=f"cannot be read; it may be damaged: {str(exc)[:MOST_REASON_CHARS] or type(exc).__name__}"
        )
    sys.stdout.buffer.write(msgspec.json.encode(reading))


if __name__ == "__main__":
    confine()
    main()
