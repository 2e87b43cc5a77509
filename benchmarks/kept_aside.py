"""Quality and cost on sets that no model here was trained on or chosen by: FAQs, health answers, questions, intents.

    python -m benchmarks.kept_aside                               # the models of the table, some 25 minutes on one core
    python -m benchmarks.kept_aside lstm-avg dan                  # any others
    python -m benchmarks.kept_aside minilm+minilm-cross           # the second model reads the ten best of the first

Needs SEMBLANCE_DATA. Scores are those of the published models through their graphs, as the service gives them.
"""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr
from sklearn.metrics.pairwise import cosine_similarity

from benchmarks.report import ROOT, arguments, command, figures, machine, write
from core.manifest import ScoreTask
from core.ranking import both_stages
from training.data.files import read_rows
from training.objectives.metrics import ranked
from training.publish.runtime import PublishedModel

MODELS = ("avg-paraphrase", "gran", "minilm-small", "minilm")
BLOCK = 125  # answers or questions that one right one is found among
BLOCKS = 3  # of each FAQ
DEPTH = 10  # candidates of a question that the second stage reads
FAQS = {
    "bank": ("bank-faq/hdfc-bank-faq.tsv.gz", "topic"),
    "course": ("technical-course-faq/datatalks-faq.tsv.gz", "topic"),
    "covid": ("covid-faq/covid-faq.tsv.gz", "source"),
}
# MEDIQA: answers to consumers' health questions, graded by experts, of which 3 and 4 are right.
# SemEval-2016, task 3B: forum questions related to one.
HEALTH = ("mediqa-health-answers", "mediqa2019-liveqa.tsv.gz", ("question", "answer", "label", "group", "grade"))
RELATED = ("semeval2016-questions", "semeval2016-3B-train.tsv.gz", ("a", "b", "label", "grade", "group"))
Values = npt.NDArray[np.float64]
Score = Callable[[Sequence[str], Sequence[str]], Values]  # n pairs -> their raw scores


def scorer(model: PublishedModel, task: ScoreTask | None = None) -> Score:
    """Raw scores of n pairs: by relevance, where the model has it, as /rank orders candidates."""
    return lambda a, b: np.asarray(model.similarity(a, b, task or model.manifest.ranking_task).raw_score, np.float64)


def two_stages(first: Score, second: Score) -> Score:
    """Both stages' scores of the `DEPTH` best candidates of each question, above all others in the first's order.

    The candidates of a question are the pairs with that first text.
    """

    def score(a: Sequence[str], b: Sequence[str]) -> Values:
        found = first(a, b)
        asked: dict[str, list[int]] = defaultdict(list)
        for i in np.argsort(-found, kind="stable").tolist():
            asked[a[i]].append(i)
        best = [candidates[:DEPTH] for candidates in asked.values()]
        flat = [i for candidates in best for i in candidates]
        read = dict(zip(flat, second([a[i] for i in flat], [b[i] for i in flat]).tolist(), strict=True))
        scores: Values = found - found.max() - DEPTH  # below all that standings of so many can be
        for candidates in best:
            scores[candidates] = both_stages(found[candidates].tolist(), [read[i] for i in candidates])
        return scores

    return score


def milliseconds(model: PublishedModel) -> float:
    """CPU time of a new answer of the FAQs (of a question with one, where the model reads both together)."""
    pairs = [pair for blocks in faq_answers().values() for pair in blocks[0]]
    questions, answers = [question for question, _ in pairs], [answer for _, answer in pairs]
    started = time.process_time()
    if model.manifest.encoder is None:
        scorer(model)(questions, answers)
    else:
        model.embed(answers)
    return 1000 * (time.process_time() - started) / len(pairs)


def _blocks(rows: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Pairs of distinct questions and distinct answers in blocks of `BLOCK`, the same ones each time."""
    one_each = {answer: (question, answer) for question, answer in dict(rows).items()}
    shuffled = sorted(one_each.values())
    random.Random(1).shuffle(shuffled)
    return [shuffled[i : i + BLOCK] for i in range(0, BLOCKS * BLOCK, BLOCK) if len(shuffled[i : i + BLOCK]) == BLOCK]


def faq_answers() -> dict[str, list[list[tuple[str, str]]]]:
    """Real FAQs: (question, its answer)."""
    found = {}
    for name, (file, last) in FAQS.items():
        rows = read_rows(name, file, ("question", "answer", "label", "group", last))
        found[name] = _blocks([(r.text("question"), r.text("answer")) for r in rows if r.raw("label") == "1"])
    return found


def reworded_questions() -> dict[str, list[list[tuple[str, str]]]]:
    """COVID-Q: (a question, another question of the same class, people's), one pair of each class."""
    by_intent: dict[str, list[str]] = defaultdict(list)
    for row in read_rows("covid-q", "covid-q/covid-q.tsv.gz", ("text", "intent", "source")):
        if not row.raw("intent").startswith("#"):  # a single question without a class
            by_intent[row.raw("intent")].append(row.text("text"))
    return {"covid-q": _blocks([(texts[1], texts[0]) for texts in by_intent.values() if len(texts) > 1])}


def first_of_block(score: Score, sets: Mapping[str, Sequence[Sequence[tuple[str, str]]]]) -> dict[str, float]:
    """How often, 0..1, the right one of a block scores highest: a set each."""
    return {
        name: mean(float(row.argmax() == i) for block in blocks for i, row in enumerate(_square(score, block)))
        for name, blocks in sets.items()
    }


def _square(score: Score, block: Sequence[tuple[str, str]]) -> Values:
    """Scores of every question with every answer of a block [n, n]."""
    asked = [question for question, _ in block for _ in block]
    return score(asked, [answer for _ in block for _, answer in block]).reshape(len(block), len(block))


def mean_average_precision(score: Score, corpus: str, file: str, names: Sequence[str]) -> float:
    """Over the groups with a right and a wrong candidate; `names` are columns: question, candidate and others."""
    asked: dict[str, list[tuple[str, str, bool]]] = defaultdict(list)
    for row in read_rows(corpus, f"{corpus}/{file}", names):
        asked[row.raw("group")].append((row.text(names[0]), row.text(names[1]), row.raw("label") == "1"))
    both = {group: rows for group, rows in asked.items() if len({right for _, _, right in rows}) > 1}
    flat = [(group, *each) for group, rows in both.items() for each in rows]
    scores = score([question for _, question, _, _ in flat], [candidate for _, _, candidate, _ in flat])
    return ranked(scores, [right for *_, right in flat], [group for group, *_ in flat])["map"]


def relatedness(score: Score) -> float:
    """Spearman rho on STR-2022: people's order of 5,441 pairs by relatedness."""
    rows = read_rows("str2022-semrel", "str2022-semrel/str2022-semrel-train.tsv.gz", ("a", "b", "rating", "source"))
    found = score([row.text("a") for row in rows], [row.text("b") for row in rows])
    return float(spearmanr(found, [float(row.raw("rating")) for row in rows]).statistic)


def intents(model: PublishedModel) -> float:
    """Share of texts whose nearest other text has the same intent, mean of three shops' bots and a city's."""
    sets: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in read_rows("intents-hint3", "intents-hint3/hint3.tsv.gz", ("text", "intent", "split")):
        sets[row.raw("intent").split("/")[0]].append((row.text("text"), row.raw("intent")))
    for row in read_rows("intents-city-kit", "intents-city-kit/city-kit.tsv.gz", ("text", "intent")):
        sets["city"].append((row.text("text"), row.raw("intent")))
    shares = []
    for rows in sets.values():
        intent_of = dict(rows)
        texts, labels = list(intent_of), np.array(list(intent_of.values()))
        cosines = cosine_similarity(model.embed(texts))
        np.fill_diagonal(cosines, -2.0)
        shared = np.array([np.count_nonzero(labels == label) > 1 for label in labels])
        shares.append(float(np.mean((labels[cosines.argmax(axis=1)] == labels)[shared])))
    return mean(shares)


def ranking(score: Score) -> dict[str, float]:
    """The figures of whatever orders candidates."""
    answers = first_of_block(score, faq_answers())
    return {
        **{f"answer_{name}": value for name, value in answers.items()},
        "answer": mean(answers.values()),
        "question": mean(first_of_block(score, reworded_questions()).values()),
        "health": mean_average_precision(score, *HEALTH),
        "related": mean_average_precision(score, *RELATED),
    }


def measure(model: PublishedModel, second: PublishedModel | None) -> dict[str, float]:
    """The figures of a model that embeds each text alone; of two stages those of ranking, and the second one's cost."""
    if second is not None:
        return {**ranking(two_stages(scorer(model), scorer(second))), "milliseconds": milliseconds(second)}
    return {
        **ranking(scorer(model)),
        "relatedness": relatedness(scorer(model, "similarity")),
        "intents": intents(model),
        "milliseconds": milliseconds(model),
    }


def main() -> None:
    """Measure, print, and write the dated result, Markdown and JSON."""
    parser = arguments("python -m benchmarks.kept_aside", __doc__)
    parser.add_argument("ids", nargs="*", default=MODELS, metavar="MODEL", help="an id, or two joined by +")
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.ids:
        first, *second = (PublishedModel(options.models / each) for each in name.split("+"))
        rows.append({"model": name, **measure(first, second[0] if second else None)})
        print(rows[-1], flush=True)  # a long run that is ended has said something
    about = (
        f"{command(parser)}. `question`, `answer`: the right one first of {BLOCK}, of COVID-Q's questions in other "
        "words, and mean of three FAQs' answers. `health`, `related`: MAP. `relatedness`: rho. `intents`: the nearest "
        "other text has the same one. `milliseconds`: CPU of one thread for a new answer; of two stages, for a pair of "
        f"the second. {machine('onnxruntime', 'numpy')}."
    )
    write(options.out, "kept-aside", "Quality and cost on sets kept aside", about, [figures(rows)], {"rows": rows})


if __name__ == "__main__":
    main()
