"""`semblance choose --faq`: which models answer from an FAQ, by which texts, and from which confidence on."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from core.ranking import ConfidenceFit
from semblance.errors import BatchError, InvalidArgument
from semblance.faq.configurations import configurations, ranked
from semblance.faq.decisions import Decided, Share, compare, recommended
from semblance.faq.files import NONE, Faq, Questions, read_faq, read_questions
from semblance.faq.saved import FAQ
from semblance.faq.scores import score
from semblance.options import ServiceOptions, TextFile

SHOWN = 10  # configurations in the table, the best ones
_LONGEST = 70  # characters of a text in a list
_NARROWEST = 120  # columns that the table needs


def choose_for_faq(
    service: ServiceOptions,
    read_as: TextFile,
    faq_file: Path,
    questions_file: Path,
    output: Path,
    *,
    models: Sequence[str] | None,
    every: bool,
    resamples: int,
    seed: int,
    as_json: bool,
) -> None:
    """Compare, recommend, and write `output`; arguments as the command's options.

    Raises:
        BatchError: a file cannot be read or does not fit, or `output` holds something else.
        SemblanceError: raised by the client.
    """
    _may_write(output)
    faq = read_faq(faq_file, read_as)
    questions = read_questions(questions_file, faq, read_as)
    for note in (*faq.notes, *questions.notes):
        typer.echo(f"semblance: {note}", err=True)
    here = service.is_here
    with Console(stderr=True).status("opening the models") as shown, service.client() as client:
        scores = score(
            client,
            faq,
            questions,
            models,
            every=every,
            clock=process_time if here else perf_counter,
            said=lambda what, share: shown.update(f"{what}, {share:.0%}"),
        )
        found = [ranked(each, scores, faq, questions) for each in configurations(scores.models)]
        shown.update(f"comparing {len(found)} ways to rank")
        compared = compare(found, questions, resamples=resamples, seed=seed)
    taken = recommended(compared)
    command = f"semblance choose --faq {faq_file.name} {questions_file.name} --seed {seed}"
    chosen_faq(taken, faq, scores.rerank_top, command[:512]).save(output)
    if as_json:
        typer.echo(json.dumps(_summary(compared, taken, faq, questions, output)))
        return
    console = Console()
    wide = Console(width=max(console.width, _NARROWEST))

    def say(line: str) -> None:
        console.print(line, soft_wrap=True, highlight=False, markup=False)

    known = sum(place != NONE for place in questions.right)
    size = len(questions.texts)
    say(f"{len(faq.entries):,} entries; {size:,} questions, of which {known:,} have an answer there")
    if scores.second_only:
        say(f"compared only as a second stage, because it reads each entry with each question: {scores.second_only}")
    wide.print(_table(compared, taken, cpu=here))
    if len(compared) > SHOWN:
        say(f"not shown: other ways to rank, {len(compared) - SHOWN}; --json has all")
    say(f"refusing everything: {1 - known / size:.2f} of the decisions right")
    say(f"recommended: {_name(taken)}, the cheapest within one standard error of the best")
    say(f"answers from a confidence of {taken.threshold:.3f} on; calibration error {taken.calibration_error:.2f}")
    for line in _wrong(taken, faq, questions):
        say(line)
    say(f"written: {output}")


def _may_write(output: Path) -> None:
    if not output.parent.is_dir():
        raise BatchError(f"{output}: there is no folder {output.parent}")
    if output.exists():
        try:
            FAQ.load(output)
        except InvalidArgument:
            raise BatchError(f"{output} holds something else: give another --output") from None


def chosen_faq(taken: Decided, faq: Faq, rerank_top: int, command: str) -> FAQ:
    """The file: fields of `POST /rank`."""
    model, match, second = taken.ranked.configuration
    fit = ConfidenceFit(
        model=model.id,
        fingerprint=model.fingerprint,
        rerank_model=None if second is None else second.id,
        rerank_fingerprint=None if second is None else second.fingerprint,
        rerank_top=None if second is None else rerank_top,
        match=match,
        intercept=round(taken.fitted.intercept, 6),
        weights={
            name: round(weight, 6) for name, weight in taken.fitted.named(taken.ranked.configuration.features).items()
        },
        rows=len(taken.ranked.first),
        calibration_error=round(taken.calibration_error, 4),
        fitted_by=command,
    )
    stages = {} if second is None else {"rerank_model": second.id, "rerank_top": rerank_top}
    settings = {
        "model": model.id,
        **stages,
        "match": match,
        "min_confidence": round(taken.threshold, 4),
        "confidence_fit": fit.model_dump(mode="json", exclude_none=True),
    }
    return FAQ(tuple(faq.entries), settings)


def _name(each: Decided) -> str:
    model, match, second = each.ranked.configuration
    stages = model.id if second is None else f"{model.id} and then {second.id}"
    return f"{stages}, matching {match}"


def _table(compared: Sequence[Decided], taken: Decided, *, cpu: bool) -> Table:
    time = "CPU ms" if cpu else "ms"
    heads = ("model", "match", "first right", "95 %", "decided right", "95 %", "wrong given", "refused", time)
    table = Table(*heads, box=None, padding=(0, 1, 0, 0))
    best = list(compared[:SHOWN])
    for each in best if taken in best else [*best, taken]:
        model, match, second = each.ranked.configuration
        table.add_row(
            model.id if second is None else f"{model.id} > {second.id}",
            match,
            *_with_range(each.first_right),
            *_with_range(each.decisions_right),
            f"{each.wrong_given.value:.2f}",
            f"{each.refused_known.value:.2f}",
            _milliseconds(each.ranked.seconds),
            style="bold" if each is taken else "",
        )
    return table


def _milliseconds(seconds: float) -> str:
    found = 1000 * seconds
    return f"{found:,.0f}" if found >= 100 else f"{found:.3g}"


def _with_range(share: Share) -> tuple[str, str]:
    return f"{share.value:.2f}", f"{share.low:.2f}-{share.high:.2f}"


def _wrong(taken: Decided, faq: Faq, questions: Questions) -> Iterator[str]:
    """The questions whose decision goes wrong in most of the repeats, each with what was answered."""
    wrong = np.flatnonzero(taken.outcome.right < 0.5).tolist()
    if len(wrong):
        yield f"wrong, of questions that the fit had not seen ({len(wrong)}):"
    for i in wrong:
        answered = faq.entries[taken.ranked.first[i]]
        right = questions.right[i]
        given = taken.outcome.given[i] >= 0.5
        if right == NONE:
            what = f"answered {answered.id} ({_short(answered.question)}), and there is no answer"
        elif not given:
            what = f"refused, and {faq.entries[right].id} has the answer"
            what += " and came first" if right == taken.ranked.first[i] else f"; first came {answered.id}"
        else:
            what = f"answered {answered.id} ({_short(answered.question)}) instead of {faq.entries[right].id}"
        yield f"  {_short(questions.texts[i])}: {what}; confidence {taken.outcome.chances[i]:.2f}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3].rstrip()}..."


def _summary(
    compared: Sequence[Decided], taken: Decided, faq: Faq, questions: Questions, output: Path
) -> dict[str, Any]:
    rows = []
    for each in compared:
        model, match, second = each.ranked.configuration
        shares = {
            name: {"value": share.value, "95": [share.low, share.high]}
            for name, share in (
                ("first_right", each.first_right),
                ("decisions_right", each.decisions_right),
                ("wrong_given", each.wrong_given),
                ("refused_known", each.refused_known),
            )
        }
        rows.append(
            {
                "model": model.id,
                "rerank_model": None if second is None else second.id,
                "match": match,
                **shares,
                "ms_a_question": 1000 * each.ranked.seconds,
                "min_confidence": each.threshold,
                "calibration_error": each.calibration_error,
                "recommended": each is taken,
            }
        )
    wrong = [
        {
            "question": questions.texts[i],
            "id": "" if questions.right[i] == NONE else faq.entries[questions.right[i]].id,
            "first": faq.entries[taken.ranked.first[i]].id,
            "answered": bool(taken.outcome.given[i] >= 0.5),
            "confidence": float(taken.outcome.chances[i]),
        }
        for i in np.flatnonzero(taken.outcome.right < 0.5).tolist()
    ]
    counts = {"entries": len(faq.entries), "questions": len(questions.texts)}
    return {**counts, "configurations": rows, "wrong": wrong, "output": str(output)}
