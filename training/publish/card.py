"""The README of a model folder, generated from its manifest."""

import re
from pathlib import Path

from core.manifest import Manifest, ProbabilityTask, SimilarityTask

_HOW = {
    "cosine": "the cosine of the two sentence embeddings",
    "exp_l1": "exp(-L1 distance) of the two sentence embeddings",
}

_NAMED = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "pt": "Portuguese",
}
_RESTRICTED = re.compile(r"research|non-commercial|\bNC\b|unstated|none stated", re.IGNORECASE)  # licences
_ORDERLESS = ("word_averaging", "projection", "dan")
_WITHOUT_ORDER = (
    '- Word averaging sees no word order: "dog bites man" and "man bites dog" score 1, and a negation is one word '
    "among others."
)
_WITH_ORDER = (
    "- It reads words in order, but was trained to call paraphrases similar: sentences of the same words in other "
    "roles, and a sentence and its negation, still score high."
)


_TRANSFORMERS = ("minilm", "cross_encoder")
_IMPORTED = (*("transformer_encoder", "transformer_pair", "transformer_classifier", "static_mean"), "sentence_bert")
_SAW_ELSEWHERE = "- Trained elsewhere: what it learnt, and which biases, its authors know."
_UNKNOWN = "- Words outside the vocabulary are read by their pieces or hashed; their share is reported as `unknown`."
_UNKNOWN_TO_BERT = (
    "- Words outside the vocabulary are read by their pieces; `unknown` is the share of words that have none, such as "
    "emoji, or are longer than a hundred characters."
)
_SAW = (
    "- Trained on captions, news, questions, tweets and encyclopaedia text; social biases of that text and of its "
    "authors are in the vectors."
)
_MINILM_SAW = (
    "- The published weights come from a billion pairs of web text, questions and answers, captions and papers; social "
    "biases of that text and of its authors are in the vectors."
)
_TOGETHER = (
    "- It reads both sentences together: nothing can be kept of one of them, and every pair costs a run of the model."
)
_LABELS = (
    "- It gives one of its labels to any text: what takes no side gets one as well, and on text of another kind than "
    "it was trained on its probabilities mean less."
)
_DIRECTED = "- It reads the sentences in their order, question before answer: the other order gives another score."


def write_card(manifest: Manifest, path: Path) -> None:
    """Write the model card in Markdown."""
    parts = [f"# {manifest.id}", f"{manifest.title}.", _summary(manifest), _figures(manifest), _data(manifest)]
    parts += [_imported(manifest)] if "parity" in manifest.provenance.recipe else []
    parts += [_tuned(manifest)] if "tuned" in manifest.provenance.recipe else []
    parts += [_training(manifest), _limits(manifest)]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _summary(manifest: Manifest) -> str:
    size = sum(entry.bytes for entry in manifest.files.values()) / 1e6
    dim = f", {manifest.dim} dimensions" if manifest.dim is not None else ""
    shared = sum(entry.bytes for entry in manifest.files.values() if entry.shared) / 1e6
    alone = f", {shared:.1f} MB of them shared with every model of the same words" if shared else ""
    lines = [
        f"- Architecture: `{manifest.architecture}` ({manifest.family}){dim}, {size:.1f} MB{alone}.",
        f"- Tasks: {', '.join(manifest.tasks)}.",
    ]
    if (task := manifest.similarity) is not None:
        how = _HOW[task.comparison] if task.comparison else f"`{task.graph}`, {_expected(task)}{_blended(task)}"
        scale = f", reported as a rating {task.label_scale[0]:g}..{task.label_scale[1]:g}" if task.label_scale else ""
        calibrated = f", calibrated ({task.calibration.kind.replace('_', ' ')})" if task.calibration else ""
        if task.calibration is None and task.classes is None:
            calibrated = (
                f", uncalibrated: the score is the raw one, {task.raw_range[0]:g}..{task.raw_range[1]:g}, as 0..1"
            )
        symmetry = "symmetric" if task.symmetric else "not symmetric"
        lines.append(f"- Similarity: {how}{calibrated}{scale}; {symmetry} in its two sentences.")
    if manifest.entailment is not None:
        lines.append(f"- Entailment: `{manifest.entailment.graph}`, labels {', '.join(manifest.entailment.labels)}.")
    for name, what in (("paraphrase", manifest.paraphrase), ("relevance", manifest.relevance)):
        if what is not None:
            fit = f", calibrated ({what.calibration.kind.replace('_', ' ')})" if what.calibration else ""
            lines.append(f"- {name.capitalize()}: `{what.graph}`, a probability{_blended(what)}{fit}.")
    if (labels := manifest.classification) is not None:
        tempered = f", divided by the temperature {labels.temperature:g}" if labels.temperature != 1.0 else ""
        lines.append(
            f"- Labels of one sentence: `{labels.graph}`, log-probabilities of {', '.join(labels.labels)}{tempered}."
        )
    if manifest.family == "interaction":
        lines += _reading(manifest)
    if (explanation := manifest.explanation) is not None:
        shown = "; ".join(f"`{matrix.name}`: {matrix.description}" for matrix in explanation.matrices)
        lines.append(f"- Explanation: `{explanation.graph}`, for each word of one sentence and of the other {shown}.")
    lines.append(f"- Fingerprint: `{manifest.fingerprint}`.")
    return "\n".join(lines)


def _blended(task: SimilarityTask | ProbabilityTask) -> str:
    """What is added to the output of a graph."""
    return "" if task.blend is None else f", {task.blend[0]:g} of it with {task.blend[1]:g} of the embeddings' cosine"


def _expected(task: SimilarityTask) -> str:
    """How the output of a graph is interpreted."""
    if task.classes is None:
        return "one value"
    if task.label_scale is None:
        return "the probability of yes (a paraphrase, a right answer)"
    return "the expected rating over its classes"


def _reading(manifest: Manifest) -> list[str]:
    """Order of the sentences of an interaction model and padding of a pair, from its recipe."""
    both_orders = manifest.similarity is not None and manifest.similarity.symmetric
    order = "the mean of the probabilities of (a, b) and (b, a)" if both_orders else "a before b"
    lines = [f"- Order: {order}."]
    architecture = manifest.provenance.recipe.get("architecture", {})
    assert isinstance(architecture, dict)
    network = architecture.get("pwim", architecture)
    assert isinstance(network, dict)
    if (grid := network.get("grid")) is not None:
        lines.append(
            f"- Padding: the image of a pair is its own size rounded up to multiples of {grid}; no other pair of a "
            "batch moves its score."
        )
    return lines


def _figures(manifest: Manifest) -> str:
    rows = [
        f"| {f.task} | {f.corpus} | {f.split} | {f.metric} | {f.value:.4f} | {f.rows} |"
        for f in manifest.figures
        if f.metric != "spearman" or len(manifest.figures) < 12  # the long transfer table keeps to Pearson
    ]
    if not rows:
        return "## Figures\n\nNone was measured: `python -m training evaluate-model` does."
    head = "| task | corpus | split | metric | value | rows |\n|---|---|---|---|---|---|"
    return (
        "## Figures\n\nOf these very files, through ONNX Runtime. Settings were chosen on development sets; "
        f"`docs/papers/` says how often each test set was measured.\n\n{head}\n" + "\n".join(rows)
    )


def _data(manifest: Manifest) -> str:
    rows = [f"| {d.name} | {d.use} | {d.rows} | {d.licence} | {d.source} |" for d in manifest.training_data]
    head = "| data | use | rows | licence | source |\n|---|---|---|---|---|"
    restricted = sum(_RESTRICTED.search(d.licence) is not None for d in manifest.training_data)
    some = "Several of these allow" if restricted > 1 else "One of these allows"
    note = (
        f"\n\n{some} research or non-commercial use only; whether weights trained on them inherit that is for you and "
        "your lawyer to decide before commercial use."
    )
    return f"## Data\n\n{head}\n" + "\n".join(rows) + (note if restricted else "")


def _imported(manifest: Manifest) -> str:
    recipe = manifest.provenance.recipe
    notes = recipe.get("notes")
    lines = [f"- Parity with its own library: {recipe.get('parity')}.", f"- Calibration: {recipe.get('calibration')}."]
    if (origin := manifest.origin) is not None:
        lines.insert(0, f"- From: `{origin.name}` of {origin.hub}, revision `{origin.revision}`.")
    lines += [f"- {note}" for note in notes] if isinstance(notes, list) else []
    return "## Import\n\n" + "\n".join(lines)


def _tuned(manifest: Manifest) -> str:
    """What a model was tuned from and on, and both models' figures."""
    tuned = manifest.provenance.recipe["tuned"]
    assert isinstance(tuned, dict)
    counts, held_out = tuned["counts"], tuned["held_out"]
    assert isinstance(counts, dict)
    assert isinstance(held_out, dict)
    rows = []
    for name, both in held_out.items():
        assert isinstance(both, dict)
        before = "" if both["start"] is None else f"{both['start']:.4f}"
        rows.append(f"| {name.replace('_', ' ')} | {before} | {both['tuned']:.4f} |")
    note = (
        ""
        if manifest.similarity is not None
        else "\n\nThe start has no entailment: its accuracy is the share of the most frequent label."
    )
    head = f"| held out: {counts['held_out']} pairs | `{tuned['from']}` | tuned |\n|---|---|---|"
    return (
        f"## Tuning\n\nFrom `{tuned['from']}` on {tuned['name']}: {counts['rows']} rows, {counts['left_out']} of them "
        f"left out; {counts['train']} pairs to train on, {counts['dev']} for the choice of the epoch and the "
        f"calibration. No sentence is in two parts.\n\n{head}\n" + "\n".join(rows) + note
    )


def _training(manifest: Manifest) -> str:
    commands = "\n".join(manifest.provenance.commands)
    versions = ", ".join(f"{name} {value}" for name, value in manifest.provenance.environment.items())
    return (
        f"## Training it again\n\nPublished {manifest.provenance.created}, seed {manifest.provenance.seed}; "
        f"{_epochs(manifest)}{versions}. The whole recipe is in `manifest.json`.\n\n```\n{commands}\n```"
    )


def _epochs(manifest: Manifest) -> str:
    """Which epoch of the last run is published, where that was recorded."""
    made = manifest.provenance
    return "" if made.epochs is None else f"the weights after epoch {made.epoch_kept} of {made.epochs}; "


def _limits(manifest: Manifest) -> str:
    languages = _languages(manifest)
    if manifest.architecture in _IMPORTED:
        cut = f"{languages}Texts over {manifest.limits.max_tokens} tokens are cut, and reported as truncated."
        together = [_TOGETHER] if manifest.family == "interaction" else []
        return "## Limits\n\n" + "\n".join([cut, _UNKNOWN_TO_BERT, *together, _SAW_ELSEWHERE])
    return (
        "## Limits\n\n"
        f"{languages}Sentences over {manifest.limits.max_tokens} tokens are cut, and reported as truncated.\n"
        f"{_UNKNOWN_TO_BERT if manifest.architecture in _TRANSFORMERS else _UNKNOWN}\n"
        f"{_weaknesses(manifest)}\n"
        f"{_MINILM_SAW if manifest.architecture in _TRANSFORMERS else _SAW}"
    )


def _languages(manifest: Manifest) -> str:
    """The beginning of the line about what a model reads."""
    if manifest.languages is None:
        return "- "
    named = " and ".join(_NAMED.get(each, f"`{each}`") for each in manifest.languages)
    return f"- {named} only: of a text in another language its scores mean little. "


def _weaknesses(manifest: Manifest) -> str:
    if manifest.family == "interaction":
        directed = manifest.similarity is not None and not manifest.similarity.symmetric
        return "\n".join([_TOGETHER, *([_DIRECTED] if directed else [])])
    if manifest.similarity is None and manifest.classification is not None:
        return _LABELS
    return _WITHOUT_ORDER if manifest.architecture in _ORDERLESS else _WITH_ORDER
