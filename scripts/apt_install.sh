#!/bin/sh
# Installs Debian packages as root or with a sudo that asks for no password; otherwise exits 1.
set -eu

command -v apt-get >/dev/null || exit 1
if [ "$(id -u)" = 0 ]; then
    as_root=
elif sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    exit 1
fi

echo "s11: installing Debian packages: $*" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# An update can fail for one foreign source and still bring what is needed.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update >"$log" 2>&1 </dev/null || true
if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 \
    install --yes --no-install-recommends "$@" >>"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    exit 1
fi
