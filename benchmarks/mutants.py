"""Would a test notice? Changes the meaning of the code in one small place at a time and runs the tests that should.

    python benchmarks/mutants.py [WORD ...]     only those with a WORD in their names

Works on a copy of the tree. A text of `MUTANTS` is searched for in all imported code and must occur exactly once; tests
are found by the names of their files. Exits with 1 if a change survives, or its text is no longer found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("retrieval", "classifier", "graph", "postgres")
NOT_COPIED = shutil.ignore_patterns(".git", ".*_cache", ".venv", ".hypothesis", "__pycache__", "results", "docs")
KILLED, PASSED = 1, 0  # pytest's exit status; any other means that the tests did not run


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of meaning: `before` becomes `after`, and one of the tests in `killed_by` must fail.

    They are named by their file, with a `-k` expression of pytest to select a few of them.
    """

    name: str
    before: str
    after: str
    killed_by: str = "test_twins"


def without(name: str, before: str, killed_by: str = "test_twins") -> Mutant:
    """A statement without its namespace predicate."""
    after, predicates = re.subn(r"(\w\.)?\bns = (%\(ns\)s|n\.ns)", "true", before)
    if predicates != 1:
        raise ValueError(f"{name}: the namespace is not there once")
    return Mutant(name, before, after, killed_by)


MUTANTS = [
    # A namespace predicate is dropped from a delete.
    without("delete relation", "delete from relation where ns = %(ns)s and doc"),
    without("delete entity", "delete from entity e where e.ns = %(ns)s"),
    without("delete entity_token", "delete from entity_token where ns = %(ns)s and entity"),
    without("delete memory", "delete from memory where ns = %(ns)s and doc"),
    without("delete turn", "delete from turn where ns = %(ns)s and doc"),
    without("delete a namespace's rows", '"delete from " + table + " where ns = %(ns)s"'),
    without("delete feedback by number", "delete from feedback where ns = %(ns)s and number"),
    without("take out of the tail", "select ctid from bm25_tail where ns = %(ns)s and doc"),
    without("delete tombstones", "delete from bm25_tombstone where ns = %(ns)s and doc"),
    # ... from a read.
    without("names of the index", "key, name, type from entity e where ns = %(ns)s and (", "test_statements"),
    without("aliases of the index", 'e.entity = a.entity where a.ns = %(ns)s"', "test_statements"),
    without("beginnings of names", "where ns = %(ns)s and token > q.prefix", "test_statements"),
    without("roots of merged entities", 'select entity, root from entity_merge where ns = %(ns)s"', "test_statements"),
    without("a merge that is undone", "delete from entity_merge where ns = %(ns)s and merge"),
    without("names of entities", "where e.ns = %(ns)s and e.entity = any(%(entities)s::bigint[])"),
    without("names of packs", "name from entity where ns = %(ns)s and entity = any(%(entities)s::bigint[]) and type"),
    without("bags of the index", "from bm25_tail where ns = n.ns and doc = any(n.changed)"),
    without("memories by id", '+ _COLUMNS + " from memory m where m.ns = %(ns)s"'),
    without("memories by metadata", "select doc from memory where ns = %(ns)s and metadata"),
    without("alive at compaction", "from memory where ns = %(ns)s and doc between"),
    without("tail at compaction", "select doc, terms, tfs from bm25_tail where ns = %(ns)s and doc > %(after)s"),
    without("tombstones counted", "select count(*) from bm25_tombstone where ns = %(ns)s", "test_statements"),
    without("tombstones read", "'') from bm25_tombstone where ns = %(ns)s", "test_statements"),
    without("supersession set anew", "where m.ns = %(ns)s and m.id = any(%(ids)s) and m.superseded_at"),
    # Visibility, ranking, packing.
    Mutant(
        "anchors need not be visible",
        "neighbourhood, eligible_anchors, rules",
        "neighbourhood, anchors, rules",
        "test_graph_leg -k anchor",
    ),
    Mutant("an entry that fits exactly is left out", "if cost > self._left", "if cost >= self._left", "test_pack"),
    Mutant(
        "a budget is passed by a token", "if tokens_used > max_tokens", "if tokens_used > max_tokens + 1", "test_pack"
    ),
    Mutant(
        "strange queries are weighed as others",
        ", in_domain=prediction.in_domain)",
        ")",
        "test_recipe_properties -k unfamiliar",
    ),
    Mutant(
        "no bonus for the query's period",
        "candidates, profile.period_weight)",
        "candidates, 0.0)",
        "test_memories -k favours",
    ),
    Mutant(
        "an identifier leads nowhere",
        "return not self.identified.isdisjoint",
        "return self.identified.isdisjoint",
        "test_identifiers",
    ),
    Mutant(
        "what holds an identifier is irrelevant",
        " or doc in self.identified",
        "",
        "test_identifiers -k little_relevant",
    ),
    Mutant("what holds an identifier is noise", ", identified=ordering.identified)", ")", "test_identifiers -k quotes"),
    Mutant("a title counts as the text", "title_weight=TITLE_WEIGHT", "title_weight=1", "test_memories -k title"),
    Mutant(
        "ef_search counts for nothing",
        "stored_vectors.breadth(query.request.ef_search, count, 1.0)",
        "stored_vectors.breadth(64, count, 1.0)",
        "test_memories -k ef_search",
    ),
    # The query log, authorisation, writers' locks.
    Mutant(
        "filters are logged as they are",
        "redacted_filters(request.filters, settings.redact)",
        "request.filters",
        "test_query_log -k filters",
    ),
    Mutant(
        "the key is compared as texts are",
        "hmac.compare_digest(key.strip(), api_key.encode())",
        "key.strip() == api_key.encode()",
        "test_http_problems -k key",
    ),
    Mutant("rows are not locked", '" order by m.id for update of m"', '" order by m.id"', "test_locks"),
    Mutant(
        "a namespace is not locked",
        'fetch(conn, _LOCK + mode, {"ns": ns})',
        'fetch(conn, _LOCK.removesuffix("for "), {"ns": ns})',
        "test_locks",
    ),
    Mutant(
        "writes do not lock their namespace",
        "await namespaces.lock_for_write(conn, namespace) if",
        "if",
        "test_locks",
    ),
]


def main(words: list[str]) -> int:
    """Try the mutants; 0 if all are killed."""
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="trivet-mutants-", dir="/tmp") as folder:
        tree = Path(folder) / "tree"
        Path(folder).chmod(0o755)
        shutil.copytree(ROOT, tree, ignore=NOT_COPIED, symlinks=True)
        for tests in sorted({mutant.killed_by for mutant in chosen}):
            if (status := run(tree, tests)) != PASSED:
                print(f"{tests} fails on the code as it is (pytest's status {status})")
                return 1
        verdicts = {mutant.name: verdict(tree, mutant) for mutant in chosen}
    left = {name: said for name, said in verdicts.items() if said != "killed"}
    print(f"{len(verdicts) - len(left)} of {len(verdicts)} killed", *left, sep="\n  ")
    return 1 if left else 0


def verdict(tree: Path, mutant: Mutant) -> str:
    """The outcome of a mutant."""
    places = places_of(tree, mutant)
    if len(places) != 1:
        said = f"its text is found {len(places)} times"
    else:
        [(path, found)] = places
        path.write_text(found.string[: found.start()] + mutant.after + found.string[found.end() :], encoding="utf-8")
        status = run(tree, mutant.killed_by)
        said = {KILLED: "killed", PASSED: "SURVIVED"}.get(status, f"the tests did not run (pytest's status {status})")
        path.write_text(found.string, encoding="utf-8")
    print(f"{mutant.name:45} {mutant.killed_by:30} {said}", flush=True)
    return said


def places_of(tree: Path, mutant: Mutant) -> list[tuple[Path, re.Match[str]]]:
    """The files that contain a mutant's text, with the match."""
    text = re.compile(r"\s+".join(map(re.escape, mutant.before.split())))  # however its lines are broken
    paths = [path for package in PACKAGES for path in sorted((tree / package).rglob("*.py"))]
    return [(path, found) for path in paths for found in text.finditer(path.read_text(encoding="utf-8"))]


def run(tree: Path, tests: str) -> int:
    """Pytest's exit status for the tests in the files with a name, or for some of them."""
    name, *options = tests.split()
    files = [str(path) for path in (tree / "tests").rglob(f"{name}.py")]
    if not files:
        raise SystemExit(f"there is no {name}.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *options, *files]
    return subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
