"""What training and service may rely on: artifact layout, graphs, tokenizer, post-processing.

Both halves import this package; it imports neither, and needs only numpy and pydantic. A model is a
folder; `manifest.json` says what is in it and every name, dtype and rule it depends on is stated here once.
"""

from contract.calibration import Calibration, CentredIsotonic, LocalLinear
from contract.errors import (
    ArtifactError,
    ContractError,
    GraphMismatchError,
    ManifestError,
    TokenizerError,
)
from contract.golden import GoldenPair, GoldenPairs
from contract.graph import CONTRACT_VERSION, ENCODER, EXPLANATION, HEAD, OPSET, PAIR, GraphSpec, check_signature
from contract.manifest import EntailmentTask, Explanation, Manifest, SimilarityTask
from contract.padding import pad
from contract.tensors import external_tensors, load_tensors
from contract.tokenizer import Encoded, Tokenizer

__all__ = [
    "CONTRACT_VERSION",
    "ENCODER",
    "EXPLANATION",
    "HEAD",
    "OPSET",
    "PAIR",
    "ArtifactError",
    "Calibration",
    "CentredIsotonic",
    "ContractError",
    "Encoded",
    "EntailmentTask",
    "Explanation",
    "GoldenPair",
    "GoldenPairs",
    "GraphMismatchError",
    "GraphSpec",
    "LocalLinear",
    "Manifest",
    "ManifestError",
    "SimilarityTask",
    "Tokenizer",
    "TokenizerError",
    "check_signature",
    "external_tensors",
    "load_tensors",
    "pad",
]
