#!/bin/sh
# lock.sh UV PACKAGE [OPTION...]: the four locks anew from pyproject.toml. Pins that still fit stay; --upgrade takes the
# newest versions. PACKAGE is locked as well. uv asks the package index that this machine is set up with, and names none.
#
#   constraints.txt         every version, for tests and training, where torch may be a build of the machine's own
#   requirements.txt        the service, with the hashes of all files of each release, for the image and `make serve`;
#                           without huggingface-hub and what only that needs (28 MB): tokenizers asks for it to fetch
#                           tokenizers from a hub, which the service never does
#   requirements-gpu.txt    the service with onnxruntime-gpu and CUDA's libraries, likewise, for `make image GPU=1`
#   requirements-build.txt  what builds the project, likewise
set -eu
uv=$1 package=$2
shift 2
compile() {
    "$uv" pip compile --quiet --python-version 3.11 --python-platform linux --no-annotate --custom-compile-command "make lock" "$@"
}
echo "$package" | compile pyproject.toml - --all-extras --strip-extras --output-file constraints.txt "$@" >/dev/null
without=$(mktemp)
trap 'rm -f "$without"' EXIT
echo 'huggingface-hub; python_version < "3"' >"$without"
compile pyproject.toml --extra server --extra tracing --constraints constraints.txt --override "$without" --generate-hashes \
    --output-file requirements.txt "$@" >/dev/null
# onnxruntime and onnxruntime-gpu are one module in two packages.
echo "onnxruntime; sys_platform == 'none'" >>"$without"
compile pyproject.toml --extra server --extra tracing --extra gpu --constraints constraints.txt --override "$without" --generate-hashes --output-file requirements-gpu.txt "$@" >/dev/null
sed -n 's/^requires = \["\(.*\)"\].*/\1/p' pyproject.toml | compile - --generate-hashes --output-file requirements-build.txt >/dev/null
