"""Tables of Wieting et al. (2016), Towards universal paraphrastic sentence embeddings."""

from dataclasses import replace

from training.architectures import LSTMConfig
from training.recipes import paragram_phrase as recipes
from training.recipes.rows import SupervisedRow
from training.results.reproductions.papers import (
    ALL,
    ENTAILMENT,
    SICK,
    SST,
    TASK_COLUMNS,
    TRANSFER,
    cited,
    printed_in,
    supervised_row,
)
from training.results.reproductions.table import Order, PaperTable, Row


def _row(recipe: str, label: str, model: str) -> Row:
    return Row(recipe, label, printed_in(model, TRANSFER))


# SemEval's systems set by set: no one system has these means.
_OTHERS = ("skip-thought", "GloVe", "median of the systems", "their 75th percentile", "the best of them")
TABLE_2 = PaperTable(
    name="wieting2016-table2",
    title="Wieting et al. (2016), Table 2: transfer of every encoder",
    columns=TRANSFER,
    rows=(
        Row("avg-raw", "raw vectors averaged", printed_in("PARAGRAM-SL999", TRANSFER), "the paper's: PARAGRAM-SL999"),
        _row("pp-avg", "PARAGRAM-PHRASE (averaging)", "PP"),
        Row("pp-avg-all", "averaging, all pairs", printed_in("PP-XXL", TRANSFER), "the paper's: XXL, Table 4"),
        _row("pp-projection", "projection", "projection"),
        _row("pp-dan", "DAN", "DAN"),
        _row("pp-rnn", "RNN", "RNN"),
        _row("pp-irnn", "iRNN", "iRNN"),
        _row("pp-lstm-no-gate", "LSTM, no output gate", "LSTM without output gate"),
        _row("pp-lstm", "LSTM, output gate", "LSTM"),
    ),
    note="The paper trains on PPDB phrase pairs from PARAGRAM-SL999 vectors, we on 160,000 sentence pairs from "
    "distilled vectors. Its means are recomputed from its figures per set, over the sets at hand. It prints of others, "
    f"over the 20 sets: {cited(_OTHERS)}.",
    orders=(
        Order("pp-avg", "avg-raw", ALL),
        Order("pp-avg-all", "pp-avg", ALL),
        Order("pp-avg", "pp-rnn", ALL),
        Order("pp-avg", "pp-lstm", ALL),
        Order("pp-avg", "pp-dan", ALL),
        Order("pp-irnn", "pp-rnn", ALL),
        Order("pp-lstm-no-gate", "pp-lstm", ALL),
    ),
)


def _of_2016(row: SupervisedRow) -> Row:
    both = (recipes.sick_both(row).name, recipes.sentiment(row).name)
    return supervised_row(row, both, (SICK, ENTAILMENT, SST))


def _alone(row: SupervisedRow) -> Row:
    """A recurrent row trained for each task of SICK apart."""
    assert isinstance(row.architecture, LSTMConfig)
    tasks = recipes.sick_alone(row, "similarity"), recipes.sick_alone(row, "entailment")
    label = f"{row.label}, a model a task, 20 epochs"
    of_tasks = replace(row, label=label, paper=row.paper[:2])
    note = "" if row.architecture.output_gate else "relatedness: its export is refused, see the paper's page"
    return supervised_row(of_tasks, (tasks[0].name, tasks[1].name), (SICK, ENTAILMENT), note)


TABLE_5 = PaperTable(
    name="wieting2016-table5",
    title="Wieting et al. (2016), Table 5: supervised, every encoder",
    columns=(TASK_COLUMNS[SICK], TASK_COLUMNS[ENTAILMENT], TASK_COLUMNS[SST]),
    rows=(
        *map(_of_2016, recipes.TABLE_5),
        *map(_alone, recipes.TABLE_5[-2:]),
        supervised_row(recipes.UNIVERSAL_SICK, (recipes.sick_both(recipes.UNIVERSAL_SICK).name,), (SICK, ENTAILMENT)),
        supervised_row(recipes.UNIVERSAL_SST, (recipes.sentiment(recipes.UNIVERSAL_SST).name,), (SST,)),
    ),
    note="Pearson r x 100 and accuracies. On SICK one encoder is trained for both tasks, in the paper one for each.",
    orders=(
        Order("pp-sick-avg", "pp-sick-lstm", SICK),
        Order("pp-sick-avg", "pp-sick-lstm", ENTAILMENT),
        Order("pp-sick-avg", "pp-sick-lstm-similarity", SICK),
        Order("pp-sick-avg", "pp-sick-lstm-similarity", ENTAILMENT),
        Order("pp-sick-lstm-no-gate-similarity", "pp-sick-lstm-similarity", SICK),
        Order("pp-sick-lstm-no-gate-similarity", "pp-sick-lstm-similarity", ENTAILMENT),
        Order("pp-sick-avg", "pp-sick-rnn", SICK),
        Order("pp-sick-lstm", "pp-sick-avg", SST),
        Order("pp-sick-avg-universal", "pp-sick-avg", SICK),
        Order("pp-sick-avg-universal", "pp-sick-avg", ENTAILMENT),
    ),
)
TABLE_6 = PaperTable(
    name="wieting2016-table6",
    title="Wieting et al. (2016), Table 6: frozen sentence vectors as features",
    columns=(TASK_COLUMNS[SICK], TASK_COLUMNS[ENTAILMENT], TASK_COLUMNS[SST]),
    rows=tuple(
        supervised_row(
            row,
            tuple(recipes.as_features(make(row)).name for make in (recipes.sick_both, recipes.sentiment)),
            (SICK, ENTAILMENT, SST),
        )
        for row in recipes.TABLE_6
    ),
    orders=(
        Order("features-sick-2400", "features-sick-256", SICK),
        Order("features-sick-2400", "features-sick-256", ENTAILMENT),
    ),
)
