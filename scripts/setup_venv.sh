#!/bin/sh
# setup_venv.sh REQUIREMENTS: brings .venv up to date with that file; quick when it is already.
set -eu
cd "$(dirname "$0")/.."

requirements=$1
venv=.venv
python=$venv/bin/python
stamp=$venv/.installed-$requirements

# `make app` and `make test` at the same time must not both build the environment.
if command -v flock >/dev/null; then
    exec 9<requirements.txt
    flock 9
fi

if ! "$python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    base=$(scripts/find_python.sh)
    echo "s11: making $venv with $("$base" -V)" >&2
    "$base" -m venv --clear "$venv"
fi

wanted=$(cat requirements.txt "$requirements" | cksum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "s11: installing $requirements into $venv (once, about a minute)" >&2
    "$python" -m pip install -qq --disable-pip-version-check -r "$requirements"
    echo "$wanted" >"$stamp"
fi
