#!/bin/sh
# deploy_rehearsal.sh: the committed tree as a hosting service gets it, with pip and a registry.
#
# An empty environment, requirements.txt alone, the hosting's forced options; then the Dockerfile's
# steps in a folder of their own. Visits health and every page each time. About two minutes.
set -eu
cd "$(dirname "$0")/.."

base=$(scripts/find_python.sh)
work=$(mktemp -d)
server=
stop() { [ -z "$server" ] || kill "$server" 2>/dev/null || true; }
trap 'stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

port=$("$base" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

# rehearse FOLDER: serves app.py of a folder as a service does, and visits it.
rehearse() {
    (cd "$1" && HOME=$work exec "$work/environment/bin/python" -m streamlit run app.py \
        --server.port "$port" --server.address 127.0.0.1 --server.headless true \
        --client.showErrorDetails false --server.enableXsrfProtection true \
        --server.fileWatcherType none) >"$work/log" 2>&1 &
    server=$!
    "$work/environment/bin/python" scripts/visit_app.py "http://127.0.0.1:$port" 120 || {
        cat "$work/log" >&2
        return 1
    }
    if grep -q Traceback "$work/log"; then
        cat "$work/log" >&2
        return 1
    fi
    stop
    wait "$server" 2>/dev/null || true
    server=
}

echo "== $("$base" -V), an empty environment, requirements.txt alone"
mkdir "$work/clone" "$work/image"
git archive HEAD | tar -xf - -C "$work/clone"
"$base" -m venv "$work/environment"
"$work/environment/bin/python" -m pip install -q --disable-pip-version-check \
    -r "$work/clone/requirements.txt"
"$work/environment/bin/python" -m pip check
rehearse "$work/clone"

echo "== the Dockerfile's files"
# COPY a file into a folder, or a folder's content; both are named alike on its two sides.
sed -n 's/^COPY //p' "$work/clone/Dockerfile" | while read -r source target; do
    mkdir -p "$work/image/$(dirname "$target/x")"
    if [ -d "$work/clone/$source" ]; then
        cp -R "$work/clone/$source/." "$work/image/$target/"
    else
        cp "$work/clone/$source" "$work/image/$target"
    fi
done
(cd "$work/image" && "$work/environment/bin/python" scripts/lay_plotly_js.py static)
rehearse "$work/image"
echo "== both served every page without an error"
