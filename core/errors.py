"""Errors of model folders.

ContractError
├── ManifestError        manifest.json is missing, malformed, or of another contract version
├── ArtifactError        a file the manifest names is missing, or its size or checksum differs
├── GraphMismatchError   an ONNX graph's inputs or outputs are not those of its kind
└── TokenizerError       the tokenizer file is malformed, or its size does not fit the manifest

Messages give the file, the value found and the value expected.
"""

from pydantic import ValidationError


class ContractError(Exception):
    """An artifact does not keep the contract between training and service."""


class ManifestError(ContractError):
    """`manifest.json` is missing, malformed, or of another contract version."""


class ArtifactError(ContractError):
    """A file that the manifest names is missing, or its size or checksum differs."""


class GraphMismatchError(ContractError):
    """An ONNX graph's tensor names, dtypes or axes are not those of its kind."""


class TokenizerError(ContractError):
    """The tokenizer file is malformed, or does not fit the manifest."""


def one_line(error: ValidationError) -> str:
    """The first thing pydantic found wrong, as `field: what`, and how many more there are."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"])) or "the file"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {first['msg']}{more}"
