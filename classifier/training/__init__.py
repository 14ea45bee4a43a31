"""From labelled queries to `models/intent.onnx`; run as `python -m classifier.training`."""
