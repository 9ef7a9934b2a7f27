#!/usr/bin/env bash
# Makes a virtual environment hold exactly what a requirements file says.
#
#   venv.sh FOLDER REQUIREMENTS [FOLDER-ON-SYS.PATH ...]
#
# Nothing happens if it does already: FOLDER/.stamp remembers the file's content and the Python version.
# Otherwise it is made anew, so that nothing lingers, and a broken or half-made one is replaced.
set -euo pipefail

venv=$1 requirements=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
pip=$here/requirements/pip.txt

digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c1-64; }

# Two makes at once in one checkout must not build the same environment. (macOS has no flock.)
if command -v flock >/dev/null; then
    exec 9>"$venv.lock"
    flock -n 9 || { echo "Waiting for another make that sets up $venv"; flock 9; }
fi

# Comments, and where the interpreter lies, do not decide what gets installed; its version does.
stamp_of() { { grep -hv '^ *#' "$pip" "$requirements"; echo "$* $("$1" -V) $PWD"; } | digest; }

if [ -x "$venv/bin/python" ] && [ -f "$venv/.stamp" ]; then
    if [ "$(cat "$venv/.stamp")" = "$(stamp_of "$venv/bin/python" "$@" 2>/dev/null)" ]; then
        exit 0
    fi
fi

python=$("$here/find_python.sh")
total=$(grep -cE '^[A-Za-z0-9]' "$requirements")
echo "Setting up $venv: $total package(s) of $requirements, with $("$python" -V) (once; up to a minute)"
rm -rf "$venv"
"$python" -m venv "$venv"

# pip names each package as it comes to it. On a terminal that makes a counter; in a log, a line now
# and then.
progress() {
    local seen=0 line terminal=
    [ -t 1 ] && terminal=1
    while IFS= read -r line; do
        case $line in
        Collecting*)
            seen=$((seen + 1))
            line=${line#Collecting }
            line=${line%% *}
            if [ -n "$terminal" ]; then
                printf '\r\033[K  %d/%d %s' "$seen" "$total" "$line"
            elif [ $((seen % 25)) -eq 0 ]; then
                echo "  $seen/$total"
            fi
            ;;
        Installing\ collected*)
            if [ -n "$terminal" ]; then printf '\r\033[K'; fi
            echo "  downloaded, unpacking"
            ;;
        esac
    done
}

install() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off \
        --require-hashes -r "$1" 2>&1
}

log=$venv/install.log
# The pip that comes with an interpreter may be years old; those before 24 misjudge hashes of
# requirements with extras.
if ! install "$pip" >"$log" || ! install "$requirements" | tee "$log" | progress; then
    echo "pip could not install $requirements:" >&2
    tail -15 "$log" >&2
    exit 1
fi
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for folder in "$@"; do
    echo "$PWD/$folder"
done >"$site/turnfold.pth"
stamp_of "$venv/bin/python" "$@" >"$venv/.stamp"
