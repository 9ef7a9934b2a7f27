#!/usr/bin/env bash
# Writes the hashed requirement files from the .in files beside them (`make lock`).
#
# Without --upgrade the versions that are locked already stay. A release has to be a week old, so
# that a hijacked one has a chance to be found before it gets here. All hashes of a version are kept:
# one file serves every platform and both Python versions. No index address is written.
set -euo pipefail
cd "$(dirname "$0")/.."

resolve() {
    .venv-lock/bin/uv pip compile --quiet --system-certs --universal --python-version 3.12 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --exclude-newer "7 days" \
        --custom-compile-command "make lock" "${@:3}" "$1" --output-file "$2"
    echo "$2: $(grep -cE '^[A-Za-z0-9]' "$2") packages"
}

resolve layers/deps/requirements.in layers/deps/requirements.txt "$@"
resolve layers/jwt/requirements.in layers/jwt/requirements.txt "$@"
# Only data is taken out of this one, so nothing that it depends on is installed.
resolve layers/vocab/requirements.in layers/vocab/requirements.txt --no-deps "$@"
# What is tested is what is deployed: the runtime's versions are fixed for the tests.
resolve infra/requirements/dev.in infra/requirements/dev.txt \
    --constraint layers/deps/requirements.txt --constraint layers/jwt/requirements.txt \
    --constraint layers/vocab/requirements.txt "$@"
for name in checkov docs ministack sam lock pip; do
    resolve "infra/requirements/$name.in" "infra/requirements/$name.txt" "$@"
done
