"""What `import trivet` imports."""

from __future__ import annotations

from tests.processes import python


def test_a_client_needs_no_numbers_no_database_and_no_server() -> None:
    code = (
        "import sys, trivet; "
        "print(sorted({'numpy', 'psycopg', 'litestar', 'onnxruntime', 'pandas', 'mcp'} & set(sys.modules)))"
    )
    assert python("-c", code).stdout == "[]\n"
