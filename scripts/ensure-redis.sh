#!/bin/sh
# A redis-server for the tests: installed when there is none and we may. Without one the Redis tests are skipped.
set -eu
command -v redis-server >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing redis-server for the tests (it is not started)"
    sh "$(dirname "$0")/apt-install.sh" redis-server && exit 0
fi
echo "no redis-server, and none could be installed (that takes root and apt-get): the Redis tests will be skipped" >&2
