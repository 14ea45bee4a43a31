#!/usr/bin/env bash
# Runs Python on the C code compiled with sanitizers.
#
# Usage: native/sanitize.sh address PYTHON TEST...   AddressSanitizer and UndefinedBehaviorSanitizer, pytest
#        native/sanitize.sh thread PYTHON SCRIPT...  ThreadSanitizer, a script
# The compiler is gcc, or the one that CC names. Without gcc it prints so and succeeds, as zig's compiler, which builds the
# library then, has no AddressSanitizer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=$1
python=$2
shift 2
compiler=${CC:-gcc}
if [[ -z ${CC-} ]] && ! command -v gcc >/dev/null; then
    echo "sanitize: skipped, there is no gcc here"
    exit 0
fi

case $mode in
    address) flags='-fsanitize=address,undefined -fno-sanitize-recover=undefined' library=libasan.so ;;
    thread) flags=-fsanitize=thread library=libtsan.so ;;
    *) echo "sanitize: address or thread, not $mode" >&2 && exit 2 ;;
esac

# Python imports a copy of the package that has only the instrumented library.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/native"
cp native/*.py native/*.[ch] "$folder/native"
CI=true CC="$compiler -g -fno-omit-frame-pointer $flags" "$python" "$folder/native/build.py"

export PYTHONDONTWRITEBYTECODE=1
preload=$("$compiler" -print-file-name=$library)
if [[ $mode == address ]]; then
    # Python itself leaks when it ends. Its own allocator would hide where a block ends.
    # A thread of ONNX Runtime may still copy a string while the process ends.
    echo interceptor_via_lib:onnxruntime_pybind11_state >"$folder/suppressions"
    ASAN_OPTIONS=detect_leaks=0:suppressions=$folder/suppressions UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc LD_PRELOAD=$preload \
        "$python" -m pytest -q -p no:cacheprovider -p no:randomly -o "pythonpath=$folder ." "$@"
else
    # It needs memory at fixed addresses, which randomised ones may be in the way of.
    TSAN_OPTIONS=exitcode=66 LD_PRELOAD=$preload PYTHONPATH="$folder:." setarch -R "$python" "$@"
fi
