"""Trivet: a three-signal adaptive retrieval server for assistants and chat memory."""
