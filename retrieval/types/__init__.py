"""The public contract as types: what goes over HTTP and what the pipeline passes on.

All are immutable msgspec structs. Input types reject unknown fields.
"""
