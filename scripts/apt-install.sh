#!/bin/sh
# apt-install.sh PACKAGE...: install Debian packages without questions, and without starting the servers in them.
set -eu
export DEBIAN_FRONTEND=noninteractive
exec 9>/var/lock/semblance-apt-install
flock 9  # .ci/run installs in two places at once, and apt's own locks refuse instead of waiting

# Debian starts a server as soon as it is installed, unless this policy says no (101: forbidden).
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
fi
# A third party's package list that cannot be read does not keep Debian's own from being used.
apt-get update -qq || echo "apt-get update had problems; going on with the lists at hand" >&2
apt-get install -y -qq --no-install-recommends "$@" >/dev/null
