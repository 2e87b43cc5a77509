"""Where the models are when no setting says so: `models` here, or the few that came with the package."""

from pathlib import Path

from contract.manifest import MANIFEST_NAME

HERE = Path("models")
PACKAGED = Path(__file__).with_name("published")  # in a wheel, never in a checkout: scripts/packages.py


def usual_models() -> Path:
    """`models` in the current folder, if models are in it or the package has none; else the package's."""
    if PACKAGED.is_dir() and not any(any(HERE.glob(f"{depth}/{MANIFEST_NAME}")) for depth in ("*", "*/*")):
        return PACKAGED
    return HERE


def where_more_are(models_dir: Path) -> str:
    """For the message that a model is missing: what to do where only the package's models are served."""
    if models_dir != PACKAGED:
        return ""
    return (
        "; these came with the package, and more are in models/ of its source: name a folder with them by "
        "SEMBLANCE_MODELS_DIR or --models-dir (docs/packages.md)"
    )
