#!/bin/sh
# find_chromium.sh [--install]: prints a Chromium that really starts; otherwise one line how to get
# one, and exit 1. CHROMIUM, when set, is the only candidate. With --install also brings a font as
# wide as Arial, which the pictures ask for: the tests look for labels that are cut.
set -eu

starts() {
    profile=$(mktemp -d)
    limit=$(command -v timeout || true)
    # The flags of tests/browser/conftest.py.
    if ${limit:+"$limit" 60} "$1" --headless=new --no-sandbox --disable-gpu --disable-quic \
        --no-first-run --disable-background-networking --disable-component-update --disable-sync \
        --user-data-dir="$profile" --dump-dom 'data:text/html,<p>s11 starts' \
        2>/dev/null </dev/null | grep -q 's11 starts'; then
        result=0
    else
        result=1
    fi
    rm -rf "$profile"
    return $result
}

find_chromium() {
    for candidate in "$@"; do
        if path=$(command -v "$candidate") && starts "$path"; then
            echo "$path"
            return
        fi
    done
    return 1
}

if [ -n "${CHROMIUM:-}" ]; then
    find_chromium "$CHROMIUM" && exit
    echo "s11: CHROMIUM=$CHROMIUM does not start; name one that does, or unset it" >&2
    exit 1
fi

fonts="fonts-dejavu fonts-liberation"
install=${1:-}
if [ "$install" = --install ] && command -v fc-match >/dev/null &&
    ! fc-match Arial | grep -qiE 'arial|liberation|helvetica|nimbus'; then
    # shellcheck disable=SC2086
    "$(dirname "$0")/apt_install.sh" $fonts || true
fi
# The shell, a Chromium without windows, takes a sixth less time for the tests.
set -- chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable
if [ "$install" = --install ] && ! command -v "$1" >/dev/null; then
    # shellcheck disable=SC2086
    "$(dirname "$0")/apt_install.sh" "$1" $fonts || true
fi
find_chromium "$@" && exit
# shellcheck disable=SC2086
if [ "$install" = --install ] && "$(dirname "$0")/apt_install.sh" chromium $fonts; then
    find_chromium "$@" && exit
fi
echo "s11: no Chromium that starts; on Debian: sudo apt-get install chromium $fonts;" \
    "elsewhere: CHROMIUM=/path/to/chrome" >&2
exit 1
