"""Trivet: a three-signal adaptive retrieval server for assistants and chat memory."""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before ONNX Runtime is imported
