#!/bin/sh
# Profiles two unmodified training scripts at the same time and shows the results.
# usage: examples/demo.sh PYTHON
set -eu
python=$1
here=$(dirname "$0")
folder=$(mktemp -d)
unset TFPROF_COLLECTOR TFPROF_TRACE
XDG_RUNTIME_DIR=$folder/run XDG_CONFIG_HOME=$folder TFPROF_STORE=$folder/store
export XDG_RUNTIME_DIR XDG_CONFIG_HOME TFPROF_STORE
mkdir -m 700 "$XDG_RUNTIME_DIR"
trap 'kill $(jobs -p) 2>/dev/null || true; tfprof stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM  # runs the trap above, too

show() {
    echo
    echo "\$ $*"
    "$@"
}

echo "\$ tfprof-run python examples/keras_digits.py &  tfprof-run python examples/session_digits.py"
tfprof-run "$python" "$here/keras_digits.py" &
tfprof-run "$python" "$here/session_digits.py"
wait $!
show tfprof jobs
show tfprof op session_digits.py
show tfprof scope keras_digits.py
show tfprof steps session_digits.py --last 5
show tfprof spans keras_digits.py
show tfprof host keras_digits.py
show tfprof status
