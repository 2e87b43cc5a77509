"""What a second stage of /rank adds to its first, by the share of the first one's scores in the order.

    python -m benchmarks.second_stage minilm-small+minilm-cross minilm+minilm-cross    # ten minutes of one core
    python -m benchmarks.second_stage mpnet+mpnet-cross --models own-models

Development sets of several kinds, none of which `benchmarks.kept_aside` measures; the last one is kept back: the share
that the service has (`core.ranking.FIRST_STAGE`) was chosen without it. Needs SEMBLANCE_DATA.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.report import ROOT, arguments, command, figures, machine, write
from core.ranking import FIRST_STAGE, Match, both_stages, texts_of
from core.scoring import best_first
from service.scoring.ranking import RERANK_TOP
from training.data.pairs import Pair
from training.data.readers import labelled_pairs, written
from training.data.tasks import answers_of_three_kinds
from training.objectives.metrics import ranked
from training.publish.runtime import PublishedModel

SHARES = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
POOL = 60  # answers that the questions of a corpus without wrong answers are asked of
KEPT_BACK = "search passages"
_POOLED = {"counselling": "counsel-chat", KEPT_BACK: "natural-questions-passages"}
Floats = npt.NDArray[np.float64]


class Asked(NamedTuple):
    """A question, the texts that are ranked for it, and the places of those that answer it."""

    question: str
    texts: Sequence[str]
    right: frozenset[int]


def sets(most: int) -> dict[str, list[Asked]]:
    """All questions of the written FAQs, and so many of each other kind, the same ones each time; the last kind is that
    kept back.

    Raises:
        CorpusError: a corpus is missing or malformed.
    """
    matches: tuple[Match, ...] = ("question", "answer", "both")
    whole = {f"written FAQs by {match}": list(_written(match)) for match in matches}
    found: dict[str, list[Asked]] = {}
    for name, pairs in answers_of_three_kinds().items():
        found["FAQs" if name == "faq" else name] = _grouped(pairs)
    found["forum"] = _grouped(labelled_pairs.read("semeval-answers"))
    found |= {name: _pooled(labelled_pairs.read(corpus)) for name, corpus in _POOLED.items()}
    return whole | {name: random.Random(1).sample(asked, min(most, len(asked))) for name, asked in found.items()}


def _written(match: Match) -> Iterable[Asked]:
    for faq in written.faqs("dev"):
        places = {name: place for place, (name, _, _) in enumerate(faq.entries)}
        texts = [texts_of(question, answer, match)[0] for _, question, answer in faq.entries]
        yield from (Asked(q, texts, frozenset([places[name]])) for q, name in faq.questions if name in places)


def _grouped(pairs: Iterable[Pair]) -> list[Asked]:
    """Questions that have a right and a wrong text."""
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.group].append(pair)
    asked = [
        Asked(own[0].a, [pair.b for pair in own], frozenset(n for n, pair in enumerate(own) if pair.label == "1"))
        for own in groups.values()
    ]
    return [each for each in asked if 0 < len(each.right) < len(each.texts)]


def _pooled(found: Iterable[Pair]) -> list[Asked]:
    """Questions that are asked of their own answer and others'."""
    one_each = {pair.b: pair.a for pair in found if pair.label == "1"}
    pairs = sorted({question: answer for answer, question in one_each.items()}.items())
    random.Random(1).shuffle(pairs)
    texts = [answer for _, answer in pairs[:POOL]]
    return [Asked(question, texts, frozenset([place])) for place, (question, _) in enumerate(pairs[:POOL])]


class Stages:
    """Raw scores of models for the questions of one set, each pair read once."""

    def __init__(self, asked: Sequence[Asked], models: Mapping[str, PublishedModel]) -> None:
        """Read nothing yet."""
        self.asked, self._models = asked, models
        self._read: dict[tuple[str, str, str], float] = {}

    @cache  # noqa: B019  one set is held at a time
    def first(self, name: str) -> list[Floats]:
        """Of each question the cosine of every text."""
        texts = sorted({text for each in self.asked for text in (each.question, *each.texts)})
        vectors = self._models[name].embed(texts).astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        at = dict(zip(texts, vectors, strict=True))
        return [np.array([at[text] @ at[each.question] for text in each.texts]) for each in self.asked]

    def second(self, name: str, places: Sequence[Sequence[int]]) -> list[list[float]]:
        """Of each question the raw scores of the texts at these places."""
        pairs = [(e.question, e.texts[i]) for e, at in zip(self.asked, places, strict=True) for i in at]
        if new := [pair for pair in dict.fromkeys(pairs) if (name, *pair) not in self._read]:
            model = self._models[name]
            raw = model.similarity([a for a, _ in new], [b for _, b in new], model.manifest.ranking_task).raw_score
            self._read |= {(name, *pair): float(value) for pair, value in zip(new, raw, strict=True)}
        found = iter(self._read[name, *pair] for pair in pairs)
        return [[next(found) for _ in at] for at in places]

    def precision(self, first: str, second: str, shares: Sequence[float]) -> dict[float, float]:
        """Mean average precision by the first one's share; 1: its own order."""
        coarse = self.first(first)
        orders = [best_first(each.tolist()) for each in coarse]
        best = [order[:RERANK_TOP] for order in orders]
        fine = self.second(second, best)
        found = {}
        for share in shares:
            scores: list[float] = []
            for raw, order, read, again in zip(coarse, orders, best, fine, strict=True):
                joined = both_stages([raw[i] for i in read], again, share)
                places = [read[n] for n in best_first(joined)] + order[RERANK_TOP:]
                scores += [-float(places.index(i)) for i in range(len(places))]
            right = [i in each.right for each in self.asked for i in range(len(each.texts))]
            groups = [str(n) for n, each in enumerate(self.asked) for _ in each.texts]
            found[share] = ranked(np.array(scores), right, groups)["map"]
        return found


def main() -> None:
    """Measure, print, and write the dated result, Markdown and JSON."""
    parser = arguments("python -m benchmarks.second_stage", __doc__)
    parser.add_argument("ids", nargs="+", metavar="FIRST+SECOND", help="ids of two models")
    parser.add_argument("--models", type=Path, default=ROOT / "models", help="a second folder with models")
    parser.add_argument("--questions", type=int, default=40, help="of each set but the written FAQs, at most")
    options = parser.parse_args()
    names = {name for pair in options.ids for name in pair.split("+")}
    folders = {name: next(f / name for f in (options.models, ROOT / "models") if (f / name).is_dir()) for name in names}
    models = {name: PublishedModel(folder) for name, folder in folders.items()}
    rows: dict[tuple[str, float], dict[str, float]] = defaultdict(dict)
    for name, asked in sets(options.questions).items():
        stages = Stages(asked, models)
        for pair in options.ids:
            first, _, second = pair.partition("+")
            found = stages.precision(first, second, SHARES)
            for share, value in found.items():
                rows[pair, share][name] = value
            print(name, pair, {share: round(value, 3) for share, value in found.items()}, flush=True)
    table = [{"stages": pair, "share of the first": f"{share:g}", **found} for (pair, share), found in rows.items()]
    about = (
        f"{command(parser)}. Mean average precision, of at most {options.questions} questions of each set but the "
        f"written FAQs; the second stage reads the best {RERANK_TOP}. Share 1 is the first stage alone; the service "
        f"has {FIRST_STAGE:g}, chosen without {KEPT_BACK!r}. {machine('onnxruntime', 'numpy')}."
    )
    write(options.out, "second-stage", "What a second stage adds", about, [figures(table)], {"rows": table})


if __name__ == "__main__":
    main()
