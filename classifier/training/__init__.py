"""Trains `models/intent.onnx` from labelled queries; run as `python -m classifier.training`."""
