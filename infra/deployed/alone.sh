#!/usr/bin/env bash
# Runs one built function as Lambda runs it, without a container: at its real paths, on a read-only
# disk but for /tmp, with its memory limit, behind the runtime interface emulator.
#
#   alone.sh FUNCTION-FOLDER LAYERS-FOLDER RUNTIME-FOLDER HANDLER MEMORY-MB PORT VARIABLES PYTHON
#
# LAYERS-FOLDER is all layers over one another; RUNTIME-FOLDER holds aws-lambda-rie and awslambdaric;
# VARIABLES is a file of NUL-separated NAME=value. Needs root, for a mount namespace of its own: the
# machine's own mounts are not touched.
set -euo pipefail
export FUNCTION=$1 LAYERS=$2 RUNTIME=$3 HANDLER=$4 MEMORY=$5 PORT=$6 VARIABLES=$7 PYTHON=$8
mkdir -p /var/task /var/runtime
exec unshare --mount --propagation private bash -euo pipefail -c '
  mapfile -d "" -t variables <"$VARIABLES"
  mount --bind "$FUNCTION" /var/task;   mount -o remount,bind,ro /var/task
  mount --bind "$RUNTIME" /var/runtime; mount -o remount,bind,ro /var/runtime
  mount --bind "$LAYERS" /opt;          mount -o remount,bind,ro /opt
  mount -o remount,bind,ro /
  mount -t tmpfs -o size=512m tmpfs /tmp
  cd /var/task
  exec env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=en_US.UTF-8 TZ=:UTC \
    LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime \
    PYTHONPATH=/var/task:/opt/python:/var/runtime \
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE="$MEMORY" AWS_LAMBDA_FUNCTION_TIMEOUT=60 \
    AWS_LAMBDA_FUNCTION_NAME=alone AWS_LAMBDA_FUNCTION_HANDLER="$HANDLER" "${variables[@]}" \
    /var/runtime/aws-lambda-rie --log-level info \
    --runtime-interface-emulator-address "127.0.0.1:$PORT" --runtime-api-address "127.0.0.1:$((PORT + 1))" \
    /usr/bin/prlimit --data=$((MEMORY * 1048576)) "$PYTHON" -m awslambdaric "$HANDLER"'
