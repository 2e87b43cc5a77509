"""all-MiniLM-L6-v2 as it was published -> `models/minilm/`: an import, calibrated and measured on our corpora."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from contract.manifest import Figure
from training.corpora.readers import sts
from training.publishing.families.siamese import STS_SCALE
from training.publishing.families.transformer import MAX_TOKENS
from training.publishing.imports.bert import read_bi_encoder
from training.publishing.imports.folder import Description, import_model
from training.publishing.imports.model import Labelled
from training.publishing.runtime import PublishedModel
from training.sources.credits import TEACHER, entry
from training.sources.figures import pairwise_figures, transfer_figures


def publish_minilm(source: Path, models: Path, version: int | None = None) -> Path:
    """Publish all-MiniLM-L6-v2 as `minilm`, the score calibrated on STS 2016 as that of our own encoders.

    Args:
        source: its folder, as sentence-transformers saves it.
        models: where model folders live.
        version: write `models/minilm/<version>`.

    Raises:
        ImportRefused: the folder lacks a file.
        CorpusMissing: a test set is not in SEMBLANCE_DATA.
        ParityError: it does not compute what the model does; nothing is published.
    """
    rated = [pair for pairs in sts.read_year("2016-test").values() for pair in pairs]
    said = Description(
        title="all-MiniLM-L6-v2 as it was published: a transformer of 22.7 million weights, here in int8",
        architecture="minilm",
        training_data=(
            TEACHER.model_copy(update={"use": "its weights and tokenizer, unchanged but for int8"}),
            entry("sts-2016", "calibration of the score", len(rated)),
        ),
        figures=_figures,
    )
    done = import_model(
        source,
        "minilm",
        models,
        version=version,
        read=partial(read_bi_encoder, max_tokens=MAX_TOKENS),
        labelled=lambda _: Labelled(rated, STS_SCALE, "sts-2016"),
        said=said,
        command="python -m training publish-minilm",
    )
    return done.folder


def _figures(model: PublishedModel) -> Sequence[Figure]:
    return [*transfer_figures(model), *pairwise_figures(model, "wikiqa"), *pairwise_figures(model, "trecqa")]
