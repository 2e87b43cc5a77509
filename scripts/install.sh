#!/bin/sh
# install.sh FOLDER EXTRAS [PACKAGE...]: the project and these extras, at the locked versions, in a virtual environment.
set -eu
folder=$1 extras=$2
shift 2
if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(sh "$(dirname "$0")/find-python.sh")
    "$python" -m venv --clear "$folder"
fi
echo "installing [$extras] into $folder"
exec "$folder/bin/python" -m pip install --disable-pip-version-check -qq -c constraints.txt -e ".[$extras]" "$@"
