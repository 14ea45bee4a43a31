#!/usr/bin/env bash
# Runs docs/experiment.md from nothing and prints what the page shows.
#
# Usage: docs/experiment/run.sh WORK
# WORK is a folder; what an earlier run left in it is removed. `trivet` and `python` are those of the path.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
rm -rf characters stdlib data
export TRIVET_DATA_DIR="$PWD/data" NO_COLOR=1 COLUMNS=120

# A command of the page with its output and, where it is not 0, its exit status. The lines that say how far a long
# command is go to a file; of a failure the last line is the reason.
show() {
    local status=0
    printf '\n$ %s\n' "$*"
    "$@" 2>progress.log || status=$?
    if ((status)); then
        grep '^Error' progress.log || true
        printf '(exit status %s)\n' "$status"
    fi
}

for domain in characters stdlib; do
    python "$here/make_folder.py" "$domain" "$domain"
done
cp "$here/keywords.json" .

echo; echo "=== before"
show trivet profile put keywords keywords.json

echo; echo "=== three commands"
show trivet tune stdlib --profile stdlib --from keywords@1 --html tuning.html
show trivet eval stdlib --profiles default,keywords@1,stdlib@1
show trivet profile promote stdlib

echo; echo "=== refused"
show trivet profile check keywords@1 stdlib
show trivet profile promote keywords

echo; echo "=== nothing to gain"
show trivet tune stdlib --profile again --dry-run

echo; echo "=== another domain"
show trivet tune characters --profile characters --from keywords@1
show trivet eval characters --profiles default,keywords@1,characters@1
