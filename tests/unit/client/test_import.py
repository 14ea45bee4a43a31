"""What `import trivet` brings."""

from __future__ import annotations

import subprocess
import sys


def test_a_client_needs_no_numbers_no_database_and_no_server() -> None:
    code = (
        "import sys, trivet; "
        "print(sorted({'numpy', 'psycopg', 'litestar', 'onnxruntime', 'pandas', 'mcp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
