"""The error for a damaged file in `models/` names it, the fault, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval import engine
from retrieval.cli.group import message_of
from retrieval.engine import Trivet
from retrieval.errors import ModelFileError
from retrieval.installation import CHECKSUMS, models_dir
from tests.serving import problem_of, served, settings_for

OPENED_AT_START = ["embedder.onnx", "embedder.tokenizer.json", "intent.onnx", "weights.onnx", "rescorer.onnx"]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that has all models, from which the engine opens them."""
    for file in models_dir().iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.setattr(engine, "models_dir", lambda: tmp_path)
    return tmp_path


def truncate(file: Path) -> None:
    replace(file, file.read_bytes()[: file.stat().st_size // 2])


def alter(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    replace(file, bytes(content))


def replace(file: Path, content: bytes) -> None:
    file.unlink()
    file.write_bytes(content)


async def opened(database_url: str) -> None:
    async with Trivet.open(settings_for(database_url)):
        pass


@pytest.mark.parametrize("name", OPENED_AT_START)
@pytest.mark.parametrize("damage", [truncate, alter, Path.unlink])
async def test_a_model_that_is_not_whole(database_url: str, models: Path, name: str, damage: object) -> None:
    assert callable(damage)
    damage(models / name)
    with pytest.raises(ModelFileError) as caught:
        await opened(database_url)
    said = message_of(caught.value)
    assert str(models / name) in said
    assert ("is missing" if damage is Path.unlink else "is damaged or incomplete") in said
    assert "install Trivet again" in said


@pytest.mark.parametrize("name", ["embedder.onnx", "embedder.tokenizer.json"])
async def test_a_model_whose_checksum_is_not_known(database_url: str, models: Path, name: str) -> None:
    (models / CHECKSUMS).unlink()
    truncate(models / name)
    with pytest.raises(ModelFileError, match="cannot be opened") as caught:
        await opened(database_url)
    assert str(models / name) in str(caught.value)


async def test_a_gate_report_that_is_not_whole(database_url: str, models: Path) -> None:
    truncate(models / "default.gate.json")
    with pytest.raises(ModelFileError, match=r"default\.gate\.json cannot be read"):
        await opened(database_url)


async def test_a_model_that_only_another_profile_uses(database_url: str, models: Path) -> None:
    """Requests with that profile get the error; others are answered."""
    truncate(models / "weights-research.onnx")
    async with served(database_url) as client:
        memory = {"memories": [{"id": "m1", "text": "My sister Ines moved to Porto."}]}
        assert (await client.post("/v1/namespaces/a/memories", json=memory)).status_code == 201
        refused = await client.post("/v1/namespaces/a/search", json={"query": "Porto", "profile": "research"})
        assert "weights-research.onnx is damaged" in str(problem_of(refused, 503)["detail"])
        assert (await client.post("/v1/namespaces/a/search", json={"query": "Porto"})).status_code == 200
