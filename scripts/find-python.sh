#!/bin/sh
# Prints a Python that can make the project's virtual environments: 3.11 or newer, with venv and pip in it.
# PYTHON names one; otherwise the first found. On a bare Debian, root gets one through apt-get.
set -eu

fits() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

first() {
    # 3.11 comes first because the versions in constraints.txt were resolved with it.
    for name in python3.11 python3 python3.12 python3.13 python3.14 python /usr/bin/python3; do
        if fits "$name"; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

if [ -n "${PYTHON:-}" ]; then
    if fits "$PYTHON"; then
        command -v "$PYTHON"
        exit 0
    fi
    echo "PYTHON=$PYTHON: expected a Python 3.11 or newer with venv and ensurepip" >&2
    exit 1
fi
first && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "no Python 3.11 with venv here: installing python3 and python3-venv" >&2
    sh "$(dirname "$0")/apt-install.sh" python3 python3-venv >&2 && first && exit 0
fi
echo "no Python 3.11 or newer with venv found: install one (Debian: apt-get install python3 python3-venv) or name it with PYTHON=" >&2
exit 1
