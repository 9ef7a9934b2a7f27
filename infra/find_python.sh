#!/bin/sh
# Prints the path of a Python interpreter that fits: the real one, not a shim or a virtual
# environment's, so that the folder it lies in can be put first on PATH (`sam build` needs that).
#
#   find_python.sh              Python 3.13, else 3.12, else a newer python3
#   find_python.sh 3.13         exactly this version
#
# TURNFOLD_PYTHON names one to use instead. Looks on PATH, in pyenv's versions, in the usual
# prefixes and in what uv has installed.
set -u

wanted="${*:-3.13 3.12}"

# Prints the real path of interpreter $1 if it is version $2 ("any": 3.12 or newer) and can make
# virtual environments. A shim for a version that is not selected fails here and is passed over.
real_path() {
    "$1" - "$2" 2>/dev/null <<'P'
import ensurepip, os, sys, venv
have, want = "%d.%d" % sys.version_info[:2], sys.argv[1]
if have != want and not (want == "any" and sys.version_info >= (3, 12)):
    sys.exit(1)
path = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
if os.path.basename(path).startswith("python"):
    print(path)
else:
    sys.exit(1)
P
}

# Interpreters of version $1 that may exist, the likeliest first.
candidates() {
    command -v "python$1" || true
    for root in "${PYENV_ROOT:-}" "${HOME:-}/.pyenv"; do
        [ -n "$root" ] && [ -d "$root/versions" ] || continue
        # Numerically by patch release, the newest first.
        for folder in $(ls "$root/versions" | grep "^$1\." | sort -t. -k3,3nr); do
            echo "$root/versions/$folder/bin/python$1"
        done
    done
    for prefix in /opt/homebrew /usr/local /usr; do
        echo "$prefix/bin/python$1"
    done
    if command -v uv >/dev/null 2>&1; then
        uv python find --no-python-downloads "$1" 2>/dev/null || true
    fi
}

if [ -n "${TURNFOLD_PYTHON:-}" ]; then
    for version in $wanted any; do
        [ "$version" = any ] && [ "$#" -gt 0 ] && continue
        real_path "$TURNFOLD_PYTHON" "$version" && exit 0
    done
    echo "TURNFOLD_PYTHON=$TURNFOLD_PYTHON does not fit: needed is Python $wanted with its venv module." >&2
    exit 1
fi

for version in $wanted; do
    for candidate in $(candidates "$version"); do
        [ -x "$candidate" ] && real_path "$candidate" "$version" && exit 0
    done
done
if [ "$#" -eq 0 ] && command -v python3 >/dev/null 2>&1; then
    real_path python3 any && exit 0
fi

cat >&2 <<M
No fitting Python found (wanted: $wanted, with the venv module).
Turnfold needs Python 3.13, or 3.12 for everything but \`make build\`. One of these brings it:
    apt-get install python3.13 python3.13-venv      (Debian, Ubuntu; the venv package is separate there)
    brew install python@3.13                        (macOS)
    pyenv install 3.13    or    uv python install 3.13
Or name an interpreter:  TURNFOLD_PYTHON=/path/to/python3.13 make ...
M
exit 1
