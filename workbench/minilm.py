"""all-MiniLM-L6-v2 as it was published -> `models/minilm/`, and its student -> `models/minilm-small/`.

Both are calibrated and measured on our corpora.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from core.golden import GOLDEN_TEXTS
from core.manifest import Provenance, TrainingData
from training.data.readers import sts, written
from training.errors import UserError
from training.families.siamese import STS_SCALE
from training.families.transformer import write_encoder
from training.models.transformer import SentenceBERT, SentenceBERTConfig, SequenceEncoder, load_weights
from training.objectives.faqs import FAQConfig
from training.publish.folders import assemble, environment, finish
from training.publish.runtime import PublishedModel
from training.recipes.sources.credits import TEACHER, by_source, entry, own_texts
from training.recipes.sources.figures import pairwise_figures, transfer_figures
from training.recipes.sources.imitated import WITH_ANSWERS
from training.train.student import TOKENIZER, StudentConfig, begin, teach, teach_faqs, texts_of
from workbench.imports.calibration import calibrated
from workbench.imports.model import CalibrationPairs
from workbench.tuning.read_back import read_start

ID, TITLE = "minilm-small", "Three layers of all-MiniLM-L6-v2, taught its vectors: half of its cost"
TITLE_AFTER_FAQS = "Three layers of all-MiniLM-L6-v2, taught its vectors and people's questions: half of its cost"


def publish_minilm(source: Path, models: Path) -> Path:
    """Publish all-MiniLM-L6-v2 as `minilm`, the score calibrated on STS 2016 as that of our own encoders.

    Args:
        source: its folder, as sentence-transformers saves it.
        models: where model folders live.

    Raises:
        FileNotFoundError, ValueError: the folder lacks a file or a weight.
        CorpusMissing: a test set is not in SEMBLANCE_DATA.
        ParityError: it does not compute what the model does; nothing is published.
    """
    encoder = SentenceBERT(SentenceBERTConfig()).eval()
    load_weights(encoder.bert, source)
    return _publish(
        encoder,
        source,
        models,
        "minilm",
        title="all-MiniLM-L6-v2 as it was published: a transformer of 22.7 million weights, here in int8",
        architecture="minilm",
        training_data=(TEACHER.model_copy(update={"use": "its weights and tokenizer, unchanged but for int8"}),),
        recipe={"architecture": asdict(encoder.config)},
        commands=("python -m workbench publish-minilm",),
    )


def publish_student(config: StudentConfig, folder: Path, runs: Path, models: Path, seed: int) -> Path:
    """Publish the taught student as `models/minilm-small`; trains it first, where that is not done.

    Args:
        config: what is taught.
        folder: of all-MiniLM-L6-v2.
        runs: where runs lie.
        models: where model folders live.
        seed: of the run.

    Raises:
        CorpusError: a corpus is missing or malformed.
        ParityError: the graph does not compute what the student does; nothing is published.
    """
    whole = SentenceBERT(SentenceBERTConfig())
    load_weights(whole.bert, folder)
    student, _ = teach(config, begin(whole, config.layers), folder / TOKENIZER, folder, runs, seed)
    assert isinstance(student.encoder, SentenceBERT)
    return _publish(
        student.encoder,
        folder,
        models,
        ID,
        title=TITLE,
        architecture=SentenceBERTConfig.name,
        training_data=(TEACHER, *_credits(config)),
        recipe={"architecture": asdict(student.encoder.config), **asdict(config), "layers": list(config.layers)},
        commands=(f"python -m workbench student --texts {config.texts} --seed {seed}",),
        seed=seed,
    )


def publish_taught_faqs(folder: Path, runs: Path, models: Path, seed: int) -> Path:
    """Teach the published `minilm-small` questions as people ask them, and publish it anew.

    Args:
        folder: of all-MiniLM-L6-v2.
        runs: where runs lie.
        models: where model folders live.
        seed: of the run.

    Raises:
        CorpusError: a corpus is missing or malformed.
        ParityError: the graph does not compute what the encoder does; nothing is published.
        UserError: the model has learnt them.
    """
    start = read_start(models / ID)
    encoder, before = start.network, start.manifest
    if "faqs" in before.provenance.recipe:
        raise UserError(f"{models / ID} has learnt them; `python -m workbench student` makes the model of before")
    assert isinstance(encoder, SequenceEncoder)
    config = FAQConfig()
    result = teach_faqs(config, ID, encoder, folder / TOKENIZER, runs, seed)
    learnt = sum(len(faq.questions) for faq in written.faqs("train"))
    use = "train: questions of people, with the right entry of an invented FAQ"
    return _publish(
        encoder.eval(),
        folder,
        models,
        ID,
        title=TITLE_AFTER_FAQS,
        architecture=SentenceBERTConfig.name,
        training_data=(*(each for each in before.training_data if each.name != "sts-2016"), own_texts(use, learnt)),
        recipe={
            **before.provenance.recipe,
            "faqs": {**asdict(config), "start": before.fingerprint, "development": result.best},
        },
        commands=(*before.provenance.commands, f"python -m workbench teach-faqs --seed {seed}"),
        seed=seed,
    )


def _publish(
    encoder: SequenceEncoder,
    folder: Path,
    models: Path,
    model_id: str,
    *,
    title: str,
    architecture: str,
    training_data: Sequence[TrainingData],
    recipe: dict[str, Any],
    commands: Sequence[str],
    seed: int = 0,
) -> Path:
    """Write a model with the tokenizer of all-MiniLM-L6-v2 in `folder`, its score calibrated on STS 2016."""
    target = models / model_id
    rated = [pair for pairs in sts.read_year("2016-test").values() for pair in pairs]
    with TemporaryDirectory(prefix="publish-") as temporary:
        draft = Path(temporary) / model_id
        draft.mkdir()
        manifest = assemble(
            draft,
            write_encoder(encoder, folder / TOKENIZER, draft, model_id),
            title=title,
            architecture=architecture,
            training_data=(*training_data, entry("sts-2016", "calibration of the score", len(rated))),
            provenance=Provenance(
                created=datetime.now(UTC).date(),
                recipe=recipe,
                commands=tuple(commands),
                seed=seed,
                environment=environment(),
            ),
            languages=("en",),
        )
        manifest = calibrated(draft, manifest, CalibrationPairs(rated, STS_SCALE, "sts-2016"))
        model = PublishedModel(draft, manifest)
        figures = [*transfer_figures(model), *pairwise_figures(model, "wikiqa"), *pairwise_figures(model, "trecqa")]
        finish(draft, manifest, figures, GOLDEN_TEXTS, models, target)
    return target


def _credits(config: StudentConfig) -> list[TrainingData]:
    use = "texts, without labels, whose vectors by the teacher it learns"
    asked = f"{use}; then its right answers, among {config.answer_pairs} of all such sources"
    counts = Counter(source for source, _ in texts_of(config))
    found = by_source(counts, use)
    return [each.model_copy(update={"use": asked}) if each.name in WITH_ANSWERS else each for each in found]
