#!/usr/bin/env bash
# Builds the image that `sam local` runs functions in, from packages of Debian and PyPI alone, so that
# no image registry is needed: lambda_image.sh SAM PYTHON RUNTIME-PACKAGES
#
#   SAM               the SAM CLI, whose runtime interface emulator and image name are used
#   PYTHON            CPython of the runtime's version, put at /var/lang
#   RUNTIME-PACKAGES  folder with awslambdaric, put at /var/runtime
#
# Needs root, a running engine (DOCKER_HOST), apt-get on Debian 12, x86_64. Differences from Lambda's
# own image: glibc 2.36 (not 2.34), this machine's build of CPython, no boto3 (it is in a layer), no
# time zones. `sam local` has to be called with --skip-pull-image.
set -euo pipefail
sam=$1 python=$2 packages=$3
VER=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
PREFIX=$("$python" -c 'import sys; print(sys.base_prefix)')
SAM_PY=$(head -1 "$sam" | sed 's/^#!//')
read -r REPO RIE < <("$SAM_PY" -c 'from samcli.local.docker.lambda_image import LambdaImage as L
print(L._INVOKE_REPO_PREFIX, L._RAPID_SOURCE_PATH / "aws-lambda-rie-x86_64")')
IMAGE=$REPO/python:$VER-x86_64
[ -x "$RIE" ] || { echo "no runtime interface emulator at $RIE" >&2; exit 2; }
[ "$(uname -m)" = x86_64 ] || { echo "x86_64 only" >&2; exit 2; }
apt-get update -qq

W=$(mktemp -d); trap 'rm -rf "$W"' EXIT
R=$W/root
mkdir -p "$R"/usr/{bin,sbin,lib,lib64} "$R"/{etc,proc,sys,dev,opt,tmp,run,var/task,var/runtime,var/lang,var/rapid}
for d in bin sbin lib lib64; do ln -s usr/$d "$R/$d"; done
chmod 1777 "$R/tmp"

# User space: shared libraries that CPython links to, a shell and coreutils (SAM's Dockerfile uses them)
PKGS="libc6 libgcc-s1 libstdc++6 zlib1g libbz2-1.0 liblzma5 libffi8 libssl3 libsqlite3-0 libreadline8 libtinfo6
 libncursesw6 libuuid1 libnsl2 libtirpc3 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libcom-err2 libkeyutils1
 libgdbm6 libdb5.3 bash coreutils libacl1 libattr1 libselinux1 libpcre2-8-0 libgmp10 ca-certificates"
mkdir "$W/deb"; chmod 777 "$W" "$W/deb"
(cd "$W/deb" && apt-get download -q $PKGS >/dev/null)
for d in "$W"/deb/*.deb; do dpkg-deb --fsys-tarfile "$d" | tar -x --keep-directory-symlink --no-same-owner -C "$R"; done
rm -rf "$R"/usr/share/{doc,man,locale,info,lintian}
ln -sf bash "$R/usr/bin/sh"
mkdir -p "$R/etc/ssl/certs"; cat "$R"/usr/share/ca-certificates/mozilla/*.crt > "$R/etc/ssl/certs/ca-certificates.crt"
printf 'root:x:0:0:root:/root:/bin/bash\nsbx_user1051:x:993:990::/home/sbx_user1051:/sbin/nologin\n' > "$R/etc/passwd"
printf 'root:x:0:\nsbx_user1051:x:990:\n' > "$R/etc/group"

# CPython at /var/lang
tar -C "$PREFIX" -c --exclude='test' --exclude='tests' --exclude='idlelib' --exclude='tkinter' --exclude='_tkinter*' --exclude='config-*' \
    --exclude='ensurepip' --exclude='site-packages/*' --exclude='__pycache__' "bin/python$VER" lib | tar -x --no-same-owner -C "$R/var/lang"
ln -s "python$VER" "$R/var/lang/bin/python3"; ln -s "python$VER" "$R/var/lang/bin/python"
strip --strip-unneeded "$R"/var/lang/lib/libpython*.so.1.0 "$R/var/lang/bin/python$VER" "$R"/var/lang/lib/python*/lib-dynload/*.so 2>/dev/null || true
cp -a "$packages/." "$R/var/runtime/"
rm -rf "$R/var/runtime/bin"
"$PREFIX/bin/python$VER" -m compileall -q -s "$R" -p / "$R/var/lang/lib" "$R/var/runtime" >/dev/null || true

# Runtime entry points, with the paths and the search order of Lambda
cat > "$R/var/runtime/bootstrap.py" <<'P'
import os, site, sys
V = "python%d.%d" % sys.version_info[:2]
sys.path[:] = [p for p in sys.path if p not in ("", "/var/runtime")]
head = [os.environ.get("LAMBDA_TASK_ROOT", "/var/task")]
if "PYTHONPATH" not in os.environ:
    head += ["/opt/python/lib/%s/site-packages" % V, "/opt/python"]
site.addsitedir("/opt/python/lib/%s/site-packages" % V)
sys.path[:0] = head + ["/var/lang/lib/%s/site-packages" % V, "/var/runtime"]
from awslambdaric.__main__ import main
main([sys.argv[0], os.environ.get("_HANDLER") or os.environ["AWS_LAMBDA_FUNCTION_HANDLER"]])
P
cat > "$R/var/runtime/bootstrap" <<P
#!/bin/bash
export AWS_EXECUTION_ENV=AWS_Lambda_python$VER
exec \${AWS_LAMBDA_EXEC_WRAPPER:-} /var/lang/bin/python$VER /var/runtime/bootstrap.py
P
cat > "$R/lambda-entrypoint.sh" <<'P'
#!/bin/sh
if [ $# -ne 1 ]; then echo "entrypoint requires the handler name to be the first argument" 1>&2; exit 142; fi
export _HANDLER="$1"
if [ -z "${AWS_LAMBDA_RUNTIME_API:-}" ]; then exec /usr/local/bin/aws-lambda-rie /var/runtime/bootstrap; else exec /var/runtime/bootstrap; fi
P
install -D -m 755 "$RIE" "$R/usr/local/bin/aws-lambda-rie"
chmod 755 "$R/var/runtime/bootstrap" "$R/lambda-entrypoint.sh"

# Import and tag
tar -C "$R" --numeric-owner --owner=0 --group=0 -c . | docker import \
  --change 'ENV LANG=en_US.UTF-8' --change 'ENV TZ=:/etc/localtime' \
  --change 'ENV PATH=/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:/opt/bin' \
  --change 'ENV LD_LIBRARY_PATH=/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib' \
  --change 'ENV LAMBDA_TASK_ROOT=/var/task' --change 'ENV LAMBDA_RUNTIME_DIR=/var/runtime' \
  --change 'WORKDIR /var/task' --change 'ENTRYPOINT ["/lambda-entrypoint.sh"]' - "$IMAGE" >/dev/null
docker tag "$IMAGE" "$REPO/python:$VER"
