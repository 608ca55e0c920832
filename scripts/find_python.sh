#!/bin/sh
# Prints a Python that can make this project's virtual environment; otherwise one line why not.
# PYTHON, when set, is the only candidate.
set -eu

without_venv=

# True if "$1" runs, its version is at least 3.11 and below 3.$2, and it can make environments.
suits() {
    "$1" -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, $2))" 2>/dev/null || return 1
    "$1" -c 'import ensurepip, venv' 2>/dev/null && return 0
    without_venv=$1
    return 1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        suits "$PYTHON" 99 && echo "$PYTHON"
        return
    fi
    # Up to 3.14 the pinned packages have wheels; a newer Python is better than none.
    for below in 15 99; do
        for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
            # A pyenv shim can stand in PATH for a version that is not switched on: run it to know.
            if suits "$candidate" "$below"; then
                echo "$candidate"
                return
            fi
        done
    done
    return 1
}

if found=$(find_python); then
    "$found" -c 'import sys; print(sys.executable)'
    exit
fi

find_python >/dev/null || true # again in this shell, for without_venv
if [ -n "$without_venv" ]; then
    # Debian ships venv apart from Python itself.
    if "$(dirname "$0")/apt_install.sh" python3-venv && found=$(find_python); then
        "$found" -c 'import sys; print(sys.executable)'
        exit
    fi
    echo "s11: $without_venv has no venv/ensurepip; on Debian or Ubuntu: sudo apt-get install python3-venv" >&2
elif [ -n "${PYTHON:-}" ]; then
    echo "s11: PYTHON=$PYTHON does not run or is older than 3.11" >&2
else
    echo "s11: no Python >= 3.11 found; install one, or name it: make … PYTHON=/path/to/python3" >&2
fi
exit 1
