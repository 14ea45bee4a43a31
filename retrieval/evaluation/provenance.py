"""What an evaluation ran on: versions and checksums, so that figures can be reproduced."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version

from retrieval.evaluation.study import EvaluationPlan
from retrieval.evaluation.summary import Provenance
from retrieval.installation import installed_version, models_dir
from retrieval.profiles.models import stored_models
from retrieval.profiles.profile import DEFAULT, Profile

_MODEL_FILES = frozenset({".onnx", ".json"})


def provenance_of(plan: EvaluationPlan, profiles: Mapping[str, Profile]) -> Provenance:
    """The provenance of a plan's figures, as of now; `profiles` are by the name that systems request."""
    labels = {system.name: profiles[system.profile or DEFAULT.name].label for system in plan.systems}
    return Provenance(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=plan.seed,
        profile=labels[plan.judged],
        profiles=labels,
        versions=versions(),
        models=model_checksums(profiles.values()),
    )


def model_checksums(profiles: Iterable[Profile] = ()) -> dict[str, str]:
    """sha256 of each bundled model and tokenizer, by its path in the folder of the models.

    Models of these profiles that are stored in a database are named "KIND of PROFILE".
    """
    folder = models_dir()
    bundled = {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.suffix in _MODEL_FILES
    }
    stored = {
        f"{kind} of {profile.label}": checksum
        for profile in profiles
        for kind, checksum in stored_models(profile).items()
    }
    return bundled | stored


def versions() -> dict[str, str]:
    """Versions of Trivet and of the libraries that figures depend on."""
    libraries = {name: version(name) for name in ("numpy", "onnxruntime", "tokenizers")}
    return {"trivet": installed_version(), "python": platform.python_version(), **libraries}
