#!/bin/sh
# ensure.sh COMMAND PACKAGE WHAT: a command of a Debian package, installed when it is missing and we may. Otherwise a line
# says that WHAT is skipped, and the exit code is 1.
set -eu
command -v "$1" >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing $2 (no server is started)"
    sh "$(dirname "$0")/apt-install.sh" "$2" && exit 0
fi
echo "SKIPPED: $3. There is no $1, and it could not be installed (that takes root and apt-get)" >&2
exit 1
