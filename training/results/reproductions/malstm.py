"""Tables of Mueller & Thyagarajan (2016), Siamese recurrent architectures: SICK, and the ablations in its text."""

from training.results.reproductions.papers import ACCURACY, MSE, RHO, SICK_COLUMNS, R
from training.results.reproductions.table import Column, Order, PaperFigure, PaperTable, Row

_MALSTM = {
    R: PaperFigure(0.8822),
    RHO: PaperFigure(0.8345),
    MSE: PaperFigure(0.2286),
    ACCURACY: PaperFigure(84.2),
}
_NOTE = (
    "The authors' released pre-training pairs hold pairs of SICK's test part, which are left out here: see "
    "docs/papers/malstm.md."
)

SICK = PaperTable(
    name="malstm-sick",
    title="Mueller & Thyagarajan (2016), Tables 2 and 4: SICK",
    columns=SICK_COLUMNS,
    rows=(
        Row("malstm-sick", "MaLSTM, teacher pre-training", _MALSTM, "the shipped model", seeds=(1, 2, 3)),
        Row("malstm-paper", "MaLSTM, the paper's recipe", _MALSTM, "STS pre-training, synonyms, Adadelta"),
    ),
    note=_NOTE,
)

RAW = "SICK r, uncalibrated"
_ABLATED = "from the text: r worse by"
ABLATIONS = PaperTable(
    name="malstm-ablations",
    title="Mueller & Thyagarajan (2016), ablations",
    columns=(
        *SICK_COLUMNS[:3],
        Column(RAW, "SICK", "test", "pearson_uncalibrated", scale=1, digits=4),
    ),
    rows=(
        Row(
            "malstm-paper",
            "the paper's recipe",
            {name: _MALSTM[name] for name in (R, RHO, MSE)} | {RAW: PaperFigure(0.8722, f"{_ABLATED} 0.01")},
        ),
        Row("malstm-paper-no-pretraining", "without pre-training", {R: PaperFigure(0.8622, f"{_ABLATED} 0.02")}),
        Row("malstm-paper-no-synonyms", "without synonyms", {R: PaperFigure(0.8422, f"{_ABLATED} 0.04")}),
        Row("malstm-paper-alone", "without either"),
        Row("malstm-sick", "teacher pre-training"),
        Row("malstm-sick-alone", "teacher recipe without pre-training"),
    ),
    note=_NOTE,
    orders=(
        Order("malstm-paper", "malstm-paper", R, worse_column=RAW),
        Order("malstm-paper", "malstm-paper-no-pretraining", R),
        Order("malstm-paper", "malstm-paper-no-synonyms", R),
        Order("malstm-sick", "malstm-sick", R, worse_column=RAW),
        Order("malstm-sick", "malstm-sick-alone", R),
    ),
)

_OF_TEXT = "the text: no gains by it"
ADADELTA = PaperTable(
    name="malstm-adadelta",
    title="Mueller & Thyagarajan (2016): encoders and words, Adadelta with rho .95",
    columns=SICK_COLUMNS,
    rows=(
        Row("malstm-adadelta", "SICK train alone, 30 epochs", _MALSTM, "entailment: SVM on states trained on ratings"),
        Row("malstm-glove", "with GloVe 840B of SICK's words", note="300 values, frozen"),
        Row("malstm-two-layers", "two layers", note=_OF_TEXT),
        Row("malstm-both-ways", "both directions, added", note=_OF_TEXT),
        Row("malstm-adadelta-pretrained", "after 8 epochs of the released pairs without SICK's", note="15 epochs"),
    ),
    note=_NOTE,
    orders=(
        Order("malstm-adadelta", "malstm-two-layers", R),
        Order("malstm-adadelta", "malstm-both-ways", R),
    ),
)
