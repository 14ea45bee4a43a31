#!/bin/sh
# Requests made from the OpenAPI document of a running server, 1,000 per operation unless told otherwise.
# `make fuzz` does it. Namespaces and memories are made and deleted: use a server of its own.
#
#   TRIVET_DATA_DIR=/tmp/trivet-fuzz trivet serve --port 8398 &
#   benchmarks/schemathesis.sh http://127.0.0.1:8398 1000
# One worker: in CPython 3.11 two threads that parse Python source at once, as Hypothesis does, can fail.
set -eu
url=${1:-http://127.0.0.1:8398}
examples=${2:-1000}
root=$(cd "$(dirname "$0")/.." && pwd)
SCHEMATHESIS_HOOKS=schemathesis_hooks PYTHONPATH="$root/tests/acceptance" exec schemathesis \
    --config-file "$root/tests/acceptance/schemathesis.toml" \
    run "$url/openapi.json" --url "$url" --no-color --warnings=off --wait-for-schema=60 --continue-on-failure \
    --phases=examples,coverage,fuzzing,stateful --max-examples="$examples" --workers=1 --generation-database=none
