#!/bin/sh
# install.sh FOLDER: the service, each package held against its hash, and the command line, in a virtual environment.
# install.sh FOLDER EXTRAS [PACKAGE...]: these extras at the locked versions; without hashes, since torch may be a build
# of this machine's own.
set -eu
folder=$1
shift
if [ $# = 0 ]; then
    echo "installing the service into $folder: $(grep -c == requirements.txt) packages, some 240 MB, a minute"
else
    echo "installing [$1] into $folder"
fi
if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(sh "$(dirname "$0")/find-python.sh")
    "$python" -m venv --clear "$folder"
fi
install() { "$folder/bin/python" -m pip install --disable-pip-version-check -qq "$@"; }
# This folder on the path (compat), instead of a finder that is asked last: in the folder that holds a clone named
# semblance, Python would take that clone for a package without code (a namespace) first.
editable() { install --config-settings editable_mode=compat -c constraints.txt "$@"; }
if [ $# = 0 ]; then
    install --require-hashes --no-deps -r requirements.txt -r requirements-build.txt
    editable -e ".[cli]" --no-build-isolation  # the command line's few packages, which the image has not
else
    extras=$1
    shift
    # Python compiles what is imported, a quarter of these files, when it first is.
    editable --no-compile -e ".[$extras]" "$@"
fi
