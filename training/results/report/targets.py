"""Our figures against targets and the papers' figures; missed targets are marked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from training.publishing.figures import FigureFile
from training.results.report.markdown import number, table
from training.results.reproductions.papers import printed


@dataclass(frozen=True)
class Target:
    """A number to reach and its source; corpus, split and metric as in the figures."""

    corpus: str
    split: str
    metric: str
    reach: float
    paper: float | None = None
    paper_name: str = ""
    lower_is_better: bool = False
    strict: bool = False  # must be exceeded, not only equalled

    def reached(self, value: float) -> bool:
        """Whether a figure meets it."""
        if value == self.reach:
            return not self.strict
        return (value < self.reach) == self.lower_is_better


_XXL = "PARAGRAM-PHRASE-XXL (Wieting et al. 2016, Table 4)"
_UNIVERSAL = "word averaging, universal (Wieting et al. 2016, Table 5)"
_MALSTM = "MaLSTM (Mueller & Thyagarajan 2016)"
_GRAN = "GRAN (Wieting & Gimpel 2017, Table 4)"
_PWIM = "PWIM (He & Lin 2016)"
_MGIM = "MGIM (Li et al. 2019)"
_GRAN_AVG = "AVG, dropout, universal (Wieting & Gimpel 2017, Table 8)"


def _pwim(corpus: str, split: str, metric: str, paper: float, *, lower_is_better: bool = False) -> Target:
    return Target(corpus, split, metric, paper, paper, _PWIM, lower_is_better=lower_is_better)


_WIKIQA = (_pwim("WikiQA", "test", "map", 0.7090), _pwim("WikiQA", "test", "mrr", 0.7234))
# The paper's test set has 1,517 pairs: that is the raw one.
_TRECQA = tuple(_pwim("TrecQA", "raw", metric, paper) for metric, paper in (("map", 0.7588), ("mrr", 0.8219)))


def _xxl(corpus: str, split: str, reach: float) -> Target:
    value = printed("PP-XXL", corpus, split)
    return Target(corpus, split, "pearson", reach, None if value is None else value / 100, _XXL)


_TRANSFER = (
    _xxl("STS 2012", "mean of sets", 0.650),
    _xxl("STS 2013", "mean of sets", 0.690),
    _xxl("STS 2014", "mean of sets", 0.765),
    _xxl("STS 2015", "mean of sets", 0.795),
    _xxl("SICK", "test", 0.795),
)

TARGETS: dict[str, tuple[Target, ...]] = {
    "avg-near": _TRANSFER,
    "avg-paraphrase": _TRANSFER,
    "avg-sick": (
        Target("SICK", "test", "pearson", 0.870, 0.8684, _UNIVERSAL),
        Target("SICK", "test", "accuracy", 0.846, 0.853, _UNIVERSAL),
    ),
    "malstm-sick": (
        Target("SICK", "test", "pearson", 0.866, 0.8822, _MALSTM),
        Target("SICK", "test", "spearman", 0.797, 0.8345, _MALSTM),
        Target("SICK", "test", "mse", 0.256, 0.2286, _MALSTM, lower_is_better=True),
        Target("SICK", "test", "accuracy", 0.842, 0.842, "MaLSTM features and SVM (Mueller & Thyagarajan 2016)"),
    ),
    "pwim-sick": (
        _pwim("SICK", "test", "pearson", 0.8784),
        _pwim("SICK", "test", "spearman", 0.8199),
        _pwim("SICK", "test", "mse", 0.2329, lower_is_better=True),
    ),
    "pwim-msrvid": (_pwim("STS 2012", "MSRvid", "pearson", 0.9112),),
    "pwim-sts2014": (_pwim("STS 2014", "weighted mean", "pearson", 0.7666),),
    "pwim-qa": (*_WIKIQA, *_TRECQA),
    "pwim-wikiqa": _WIKIQA,
    "pwim-trecqa": _TRECQA,
    "mgim-sick": (Target("SICK", "test", "pearson", 0.870, 0.8993, _MGIM),),
    "mgim-msrp": (
        Target("MSRP", "test", "accuracy", 0.75, 0.788, _MGIM),
        Target("MSRP", "test", "f1", 0.83, 0.848, _MGIM),
    ),
}


def _any(file: FigureFile) -> bool:
    return True


def supervised_on_sick(file: FigureFile) -> bool:
    """Whether a model rates SICK on its own scale, instead of by a cosine."""
    return any((figure.corpus, figure.metric) == ("SICK", "mse") for figure in file.figures)


_GRAN_MEAN = printed("GRAN paper GRAN", "transfer", "mean of sets")
assert _GRAN_MEAN is not None
# For the best of all models.
BEST: tuple[tuple[str, Callable[[FigureFile], bool], Target], ...] = (
    ("transfer", _any, Target("transfer", "mean of sets", "pearson", 0.750, _GRAN_MEAN / 100, _GRAN)),
    ("supervised", supervised_on_sick, Target("SICK", "test", "pearson", 0.880, 0.8684, _UNIVERSAL)),
    ("supervised", _any, Target("SICK", "test", "accuracy", 0.853, 0.853, _UNIVERSAL, strict=True)),
    ("supervised", _any, Target("STS 2012-2015 split", "test", "pearson", 0.829, 0.829, _GRAN_AVG, strict=True)),
)


CONTAMINATED = ("malstm-contaminated",)  # its pre-training has test pairs: it is the best of nothing


def targets(files: Sequence[FigureFile]) -> str:
    """The section: one line a target, first of named models, then of the best there are."""
    rows = []
    for file in files:
        for target in TARGETS.get(file.recipe, ()):
            value = file.value(target.corpus, target.split, target.metric)
            if value is not None:
                rows.append(_line(file.label, target, value))
    clean = [file for file in files if file.recipe not in CONTAMINATED]
    for kind, fits, target in BEST:
        title = f"best {kind} encoder"
        where = (target.corpus, target.split, target.metric)
        measured = [(value, file) for file in clean if fits(file) and (value := file.value(*where)) is not None]
        if measured:
            choose = min if target.lower_is_better else max
            value, file = choose(measured, key=lambda pair: pair[0])
            rows.append(_line(f"{title}: {file.label}", target, value))
        else:
            rows.append(_line(title, target, None))
    shown = table(("model", "corpus", "split", "metric", "ours", "to reach", "", "paper", "paper's model"), rows)
    return f"{shown}\n\nThe best encoder of a line is the best by that very figure, of all measured runs."


def _line(model: str, target: Target, value: float | None) -> tuple[str, ...]:
    verdict = "not measured" if value is None else "reached" if target.reached(value) else "**missed**"
    sign = ("< " if target.lower_is_better else "> ") if target.strict else ("<= " if target.lower_is_better else "")
    return (
        model,
        target.corpus,
        target.split,
        target.metric,
        number(value, 4),
        f"{sign}{target.reach:.4f}",
        verdict,
        number(target.paper, 4),
        target.paper_name,
    )
