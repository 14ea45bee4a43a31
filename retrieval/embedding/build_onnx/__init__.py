"""Builds `models/embedder.onnx` from the public weights; needs onnx and safetensors."""
