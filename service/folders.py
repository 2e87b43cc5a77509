"""Where the models are when no setting says so: `models` here, or the few that came with the package, and one's own."""

from collections.abc import Collection
from pathlib import Path

from core.manifest import MANIFEST_NAME

HERE = Path("models")
OWN = Path("own-models")  # of `tune` and `import`, the first of which may make it while the service runs
PACKAGED = Path(__file__).with_name("published")  # in a wheel, never in a checkout: scripts/packages.py


def usual_models() -> tuple[Path, ...]:
    """`models` here, if models are in it or the package has none, else the package's; and one's own."""
    return (PACKAGED if PACKAGED.is_dir() and not _has_models(HERE) else HERE, OWN)


def _has_models(folder: Path) -> bool:
    return any(any(folder.glob(f"{depth}/{MANIFEST_NAME}")) for depth in ("*", "*/*"))


def where_more_are(models_dir: Collection[Path]) -> str:
    """For the message that a model is missing: what to do where only the package's models are served."""
    if PACKAGED not in models_dir:
        return ""
    return (
        "; these came with the package, and more are in models/ of its source: name a folder with them by "
        "SEMBLANCE_MODELS_DIR or --models-dir (docs/packages.md)"
    )
