"""What can be wrong with an artifact.

ContractError
├── ManifestError        manifest.json is missing, malformed, or of another contract version
├── ArtifactError        a file the manifest names is missing, or its size or checksum differs
├── GraphMismatchError   an ONNX graph's inputs or outputs are not those of its kind
└── TokenizerError       the tokenizer file is malformed, or its size does not fit the manifest

Every message says what came, what was expected and where.
"""


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
