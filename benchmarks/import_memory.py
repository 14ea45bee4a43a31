"""Peak resident memory of importing a large Claude export: `python benchmarks/import_memory.py`.

The export is written by one process and read by another, whose peak is printed. With `--stored` the other one is the
whole `trivet import`, with the models and the database's driver, into a separate database; this takes long.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from retrieval.imports.files import ImportFile
from retrieval.imports.formats import detect, read
from retrieval.imports.records import ImportContext, SourceRecord

START = datetime(2023, 1, 1, tzinfo=UTC)
SYLLABLES = "bakelimonurasetidenlormisnakpolretsun"
WORDS = [SYLLABLES[index : index + size] for size in (3, 5, 7, 9) for index in range(25)]
MESSAGES = 40


def conversations(seed: int) -> Iterator[str]:
    """Endless conversations of 40 messages, as in Claude's export."""
    rng = random.Random(seed)
    number = 0
    while True:
        messages = []
        for index in range(MESSAGES):
            number += 1
            text = " ".join(rng.choices(WORDS, k=rng.randint(10, 400)))
            at = (START + timedelta(minutes=number)).isoformat()
            messages.append(
                {
                    "uuid": str(UUID(int=number)),
                    "text": text,
                    "content": [{"type": "text", "text": text, "citations": []}],
                    "sender": "assistant" if index % 2 else "human",
                    "created_at": at,
                    "updated_at": at,
                    "attachments": [],
                    "files": [],
                }
            )
        id_ = str(UUID(int=2**100 + number))
        yield json.dumps({"uuid": id_, "name": text[:30], "created_at": at, "chat_messages": messages}, indent=1)


def write(path: Path, megabytes: int) -> None:
    with path.open("w") as file:
        file.write("[")
        for index, conversation in enumerate(conversations(seed=7)):
            if file.tell() >= megabytes * 1_000_000:
                break
            file.write(",\n" * bool(index) + conversation)
        file.write("]")


def read_all(path: Path) -> None:
    started = time.perf_counter()
    with path.open("rb") as file:
        source = ImportFile(file, path.name)
        records = read(source, detect(source), ImportContext())
        memories = sum(isinstance(record, SourceRecord) for record in records)
    print(f"{memories:,} memories in {time.perf_counter() - started:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--stored", action="store_true", help="measure the whole `trivet import`")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        read_all(options.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.json"
        write(path, options.megabytes)
        print(f"{path.stat().st_size / 1e6:.0f} MB of Claude export")
        if options.stored:
            command = [sys.executable, "-m", "retrieval.cli", "import", str(path), "--data-dir", f"{folder}/data"]
        else:
            command = [sys.executable, __file__, "--read", str(path)]
        subprocess.run(command, check=True, env={**os.environ, "TRIVET_DATABASE_URL": "embedded"})
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"peak resident size: {peak * (1 if sys.platform == 'darwin' else 1024) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
