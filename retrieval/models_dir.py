"""Where the ONNX files live, in a checkout and in an installed wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def models_dir() -> Path:
    """The folder of the bundled models.

    Returns:
        `retrieval/_models`, where the wheel puts them, if it exists; else the checkout's
        `models/` beside the package. The path is not checked further: opening a model in it
        says which file is missing.
    """
    installed = _PACKAGE / "_models"
    return installed if installed.is_dir() else _PACKAGE.parent / "models"
