"""Learned models: intents, leg weights and the rescorer; features, training and inference."""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # set before the import of ONNX Runtime, which reads it then
