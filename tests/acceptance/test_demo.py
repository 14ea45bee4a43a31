"""`make demo`: the Pythons it takes; `trivet demo` from the first line to Ctrl-C, on its own embedded database."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from packaging.specifiers import SpecifierSet

from retrieval.cli.demo import QUESTIONS, sample, serving_lines
from retrieval.settings import Settings
from tests.processes import PATIENCE_S, ROOT, environment, postgres_in, python, status, until


@pytest.mark.parametrize(
    ("version", "flags", "fits"),
    [("3.10.19", "", False), ("3.11.0", "", True), ("3.14.9", "", True), ("3.14.9", "t", False), ("3.15.0", "", False)],
)
def test_make_names_the_pythons_that_fit(version: str, flags: str, fits: bool, tmp_path: Path) -> None:
    """For others pip would only say that there is no onnxruntime; `t` is free-threaded. pip agrees on versions."""
    other = tmp_path / "python"
    disguise = f"import sys; sys.version_info = ({version.replace('.', ', ')}); sys.abiflags = '{flags}'"
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{disguise}; $2"\n')
    other.chmod(0o755)
    (tmp_path / "requirements.lock").touch()
    command = ("make", "-f", str(ROOT / "Makefile"), ".venv/.locked", f"PYTHON={other}")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ("Setting up .venv" in done.stdout) == fits
    assert ("Trivet needs Python 3.11 to 3.14" in done.stderr) == (not fits)
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert (version in SpecifierSet(metadata["project"]["requires-python"]) and not flags) == fits


def test_questions_are_two_of_each_intent() -> None:
    """And all of them are in the sample, with evidence."""
    queries = {query.id: query for query in sample().judged}
    types = sorted(queries[id_].type for id_ in QUESTIONS)
    assert types == sorted(2 * ["fact_lookup", "relationship", "preference", "open_ended"])


def test_demo_prints_packs_serves_and_ends_with_ctrl_c(data_dir: Path) -> None:
    """Packs with intent, weights, every leg's rank and timings; a server that answers; nothing left behind."""
    port = free_port()
    arguments = [sys.executable, "-m", "retrieval.cli", "demo", "--port", str(port)]
    with subprocess.Popen(
        arguments,
        env=environment(TRIVET_DATA_DIR=str(data_dir), PYTHONUNBUFFERED="1"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    ) as demo:
        try:
            printed = read_until(demo, f"http://127.0.0.1:{port}/docs", timeout_s=240)
            until(lambda: status(f"http://127.0.0.1:{port}/health/ready") == 200)
            assert postgres_in(data_dir)
            answer = httpx.post(
                f"http://127.0.0.1:{port}/v1/namespaces/demo/search",
                json={"query": "Which vet do Lucía and Maya share?", "top_k": 3},
            )
            demo.send_signal(signal.SIGINT)
            rest, _ = demo.communicate(timeout=PATIENCE_S)
        finally:
            demo.kill()
    assert demo.returncode == 0, rest
    assert "Traceback" not in printed + rest
    assert f"console:  http://127.0.0.1:{port}\n" in printed
    assert f"API:      http://127.0.0.1:{port}/docs\n" in printed
    assert answer.status_code == 200
    assert len(answer.json()["results"]) == 3
    assert postgres_in(data_dir) == []
    check_packs(printed)
    python("-m", "retrieval.cli", "migrate", TRIVET_DATA_DIR=str(data_dir))  # a server can use the data folder


def free_port() -> int:
    """One that no other program gets meanwhile, as the system gives out none of these by itself."""
    for port in range(20_000 + os.getpid() % 10_000, 32_768):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def test_a_demo_without_a_console_names_none() -> None:
    """And a key is only shown as the name of its variable."""
    lines = "\n".join(serving_lines(Settings(port=9000, console=False), {"TRIVET_API_KEY": "sesame"}))
    assert "console" not in lines
    assert "http://127.0.0.1:9000/docs" in lines
    assert "Bearer $TRIVET_API_KEY" in lines
    assert "sesame" not in lines


def check_packs(printed: str) -> None:
    """What the first promise of the README says about each pack."""
    packs = printed.split("\n--- ")[1:]
    assert len(packs) >= 6
    for pack in packs:
        assert re.search(r"^intent   (fact_lookup|relationship|preference|open_ended) ", pack, re.M)
        assert re.search(r"^weights  vector \d\.\d\d, bm25 \d\.\d\d, graph \d\.\d\d", pack, re.M)
        assert re.search(r"^ +item +fused +vector +bm25 +graph", pack, re.M)
        assert re.search(r"^ +\[\d+\] +\d+ +(\d+|-) +(\d+|-) +(\d+|-) ", pack, re.M)
        assert re.search(r"^ms       .*total \d+\.\d", pack, re.M)
        assert re.search(r"^context pack, \d+ of 400 tokens:$", pack, re.M)
        assert re.search(r"^evidence: \d of \d", pack, re.M)
    assert re.search(r"^ +\[\d+\] .* \(comes with \[\d+\]\)$", printed, re.M)
    assert "* marks what the sample calls evidence" in printed
    found = re.search(r"recall@10 (\d\.\d{3})", printed)
    assert found
    assert float(found[1]) > 0.4


def read_until(demo: subprocess.Popen[str], mark: str, *, timeout_s: float) -> str:
    """The demo's output up to the line with `mark`; the demo is killed if there is none."""
    assert demo.stdout
    lines: list[str] = []
    watchdog = threading.Timer(timeout_s, demo.kill)
    watchdog.start()
    try:
        for line in demo.stdout:
            lines.append(line)
            if mark in line:
                return "".join(lines)
    finally:
        watchdog.cancel()
    pytest.fail("the demo ended early:\n" + "".join(lines))


def test_demo_names_a_port_that_is_taken(data_dir: Path) -> None:
    """Before anything else is done."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        demo = ("-m", "retrieval.cli", "demo", "--port", str(port))
        done = python(*demo, status=1, TRIVET_DATA_DIR=str(data_dir))
    assert f"port {port} of 127.0.0.1 cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
    assert not data_dir.exists()


def test_the_command_line_is_told_which_database_it_is() -> None:
    """That of the demo is not the one that the commands use by themselves."""
    embedded = serving_lines(Settings(data_dir=Path("/a folder/demo")), {})
    assert embedded[-1].startswith("  TRIVET_DATA_DIR='/a folder/demo' trivet context -n demo ")
    named = serving_lines(Settings(database_url="postgresql://db/trivet"), {})
    assert named[-1].startswith("  trivet context -n demo ")
