"""How well questions about long technical texts find them: cut to their beginning, as long memories, as documents.

The texts are Django's documentation (BSD-3-Clause), from its source archive on PyPI; none is kept here. The questions
in `document_questions.jsonl` are written for this; the answer to each, marked by `passage`, begins after the first 300
word pieces of its text.

    pip download --no-deps --no-binary Django Django==5.2.8
    python benchmarks/documents.py django-5.2.8.tar.gz
"""

from __future__ import annotations

import argparse
import asyncio
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from tokenizers import Tokenizer

from retrieval.embedding.onnx import MAX_PIECES
from retrieval.engine import Trivet
from retrieval.installation import models_dir
from retrieval.settings import Settings
from retrieval.types.document import DocumentInput
from retrieval.types.memory import MemoryInput
from retrieval.types.search import Mode, SearchRequest, SearchResult

QUESTIONS = Path(__file__).with_name("document_questions.jsonl")
TOP_K = 10
MODES = (Mode.VECTOR, Mode.BM25, Mode.ADAPTIVE)


class Question(msgspec.Struct, frozen=True):
    document: str
    question: str
    passage: str


def texts_of(archive: Path) -> dict[str, str]:
    """The pages of the archive's `docs` without the release notes, by path."""
    texts = {}
    with tarfile.open(archive) as opened:
        for member in opened:
            _, _, path = member.name.partition("/docs/")
            if path.endswith(".txt") and not path.startswith("releases/") and (file := opened.extractfile(member)):
                texts[path.removesuffix(".txt")] = file.read().decode()
    return texts


def head_of(text: str, tokenizer: Tokenizer) -> str:
    """The part of a text that fits in the embedder's window."""
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    return text[: offsets[MAX_PIECES - 3][1]] if len(offsets) > MAX_PIECES - 2 else text


async def measure(
    engine: Trivet, system: str, questions: Sequence[Question], source: Callable[[SearchResult], str | None]
) -> list[str]:
    """Rows of a table for each mode: how often the document is in ten results and in ten documents, and the passage."""
    rows = []
    for mode in MODES:
        documents = distinct = passages = 0
        for each in questions:
            request = SearchRequest(query=each.question, mode=mode, top_k=TOP_K, rescore=False, source_cap=TOP_K)
            found = (await engine.search(system, request)).results
            documents += each.document in map(source, found)
            passages += any(
                source(result) == each.document and each.passage.casefold() in " ".join(result.text.split()).casefold()
                for result in found
            )
            capped = (await engine.search(system, msgspec.structs.replace(request, source_cap=1))).results
            distinct += each.document in map(source, capped)
        shares = " | ".join(f"{count / len(questions):.3f}" for count in (documents, distinct, passages))
        rows.append(f"| {system} | {mode} | {shares} |")
    return rows


async def run(archive: Path, folder: Path) -> list[str]:
    texts = texts_of(archive)
    questions = [msgspec.json.decode(line, type=Question) for line in QUESTIONS.read_bytes().splitlines()]
    tokenizer = Tokenizer.from_file(str(models_dir() / "embedder.tokenizer.json"))
    tokenizer.no_truncation()
    print(
        f"{len(texts)} texts, {sum(len(text.split()) for text in texts.values()):,} words, {len(questions)} questions"
    )
    rows = []
    async with Trivet.open(Settings(data_dir=folder)) as engine:
        memories = {"head": {name: head_of(text, tokenizer) for name, text in texts.items()}, "memory": texts}
        for system, content in memories.items():
            for name, text in content.items():
                await engine.add(system, [MemoryInput(id=name, text=text)])
            rows += await measure(engine, system, questions, lambda result: result.id)
        started, chunks = time.perf_counter(), 0
        for name, text in texts.items():
            receipt = await engine.documents.put("document", DocumentInput(id=name, text=text, media_type="text/x-rst"))
            chunks += receipt.chunks
        print(f"{chunks:,} chunks put in {time.perf_counter() - started:.0f} s")
        rows += await measure(engine, "document", questions, lambda result: result.document_id)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path, help="the source archive")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(run(chosen.archive, Path(folder)))
    print("| stored as | leg | document in 10 results | in 10 documents | passage in 10 results |")
    print("|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
