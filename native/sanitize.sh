#!/usr/bin/env bash
# Runs tests on the C code compiled with AddressSanitizer and UndefinedBehaviorSanitizer.
#
# Usage: native/sanitize.sh PYTHON TEST...
# The compiler is gcc, or the one that CC names. Without gcc it prints so and succeeds, as zig's compiler, which builds the
# library then, has no AddressSanitizer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=$1
shift
compiler=${CC:-gcc}
if [[ -z ${CC-} ]] && ! command -v gcc >/dev/null; then
    echo "sanitize: skipped, there is no gcc here"
    exit 0
fi

# The tests import a copy of the package that has only the instrumented library.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/native"
cp native/*.py "$folder/native"
names=$("$python" -c 'import runpy; cpu = runpy.run_path("native/cpu.py"); print(*map(cpu["file_name"], cpu["LEVELS"]))')
first=${names%% *}
"$compiler" -std=c11 -D_DEFAULT_SOURCE -O1 -g -shared -fPIC -fno-omit-frame-pointer -ffp-contract=off \
    -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=undefined \
    native/*.c -o "$folder/native/$first" -lm -lpthread
for name in $names; do
    [[ $name == "$first" ]] || ln -s "$first" "$folder/native/$name"
done

# Python itself leaks when it ends. Its own allocator would hide where a block ends.
ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1 \
    LD_PRELOAD=$("$compiler" -print-file-name=libasan.so) \
    "$python" -m pytest -q -p no:cacheprovider -p no:randomly -o "pythonpath=$folder ." "$@"
