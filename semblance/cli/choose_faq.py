"""`semblance choose --faq`: which models answer from an FAQ, by which texts, and from which confidence on."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from core.ranking import digest_of
from semblance.cli.options import ServiceOptions, TextFile
from semblance.cli.render import printable
from semblance.client.faq import FAQ
from semblance.errors import BatchError, InvalidArgument
from semblance.jobs.faq.configurations import configurations, ranked
from semblance.jobs.faq.decisions import Decided, as_confidence_fit, compare, default_of, recommended
from semblance.jobs.faq.files import NONE, Faq, Questions, columns_given, read_faq, read_questions
from semblance.jobs.faq.scores import score
from semblance.tables.output_file import refuse_special

SHOWN = 10  # configurations in the table, the best ones
_LONGEST = 70  # characters of a text in a list
_NARROWEST = 120  # columns that the table needs


class _Found(NamedTuple):
    """What is printed: the ways to answer, best first, one of them chosen, and what they were tried with."""

    compared: Sequence[Decided]
    chosen: Decided
    default: Decided | None
    faq: Faq
    questions: Questions


def choose_for_faq(
    service: ServiceOptions,
    read_as: TextFile,
    faq_file: Path,
    questions_file: Path,
    output: Path,
    *,
    models: Sequence[str] | None,
    every: bool,
    columns: Sequence[str],
    resamples: int,
    seed: int,
    as_json: bool,
) -> None:
    """Compare, recommend, and write `output`; arguments as the command's options.

    Raises:
        BatchError: a file cannot be read or does not fit, or `output` holds something else or is no plain file.
        OSError: the disk is full; what was found is printed all the same.
        SemblanceError: raised by the client.
    """
    earlier = _may_write(output)
    names = columns_given(columns)
    faq = read_faq(faq_file, read_as, names)
    if earlier is not None and not {*earlier.entries} & {*faq.entries}:  # of an FAQ that grew some are the same
        raise BatchError(f"{output} holds another FAQ: give another --output")
    questions = read_questions(questions_file, faq, read_as, names)
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
            step=lambda what, share: shown.update(f"{what}, {share:.0%}"),
        )
        ways = [ranked(each, scores, faq, questions) for each in configurations(scores.models)]
        shown.update(f"comparing {len(ways)} ways to rank")
        compared = compare(ways, questions, resamples=resamples, seed=seed)
    default = default_of(compared, scores.default)
    chosen = recommended(compared, default)
    printed = _Found(compared, chosen, default, faq, questions)
    command = f"semblance choose --faq {faq_file.name} {questions_file.name} --seed {seed}"
    try:
        chosen_faq(chosen, faq, scores.rerank_top, command[:512]).save(output)
    except (OSError, BatchError):  # what was found took long, and stands here alone
        _print_found(printed, None, as_json=as_json, cpu=here)
        raise
    _print_found(printed, output, as_json=as_json, cpu=here)


def _print_found(found: _Found, written: Path | None, *, as_json: bool, cpu: bool) -> None:
    """Print the comparison, and where the choice was written, if it was."""
    if as_json:
        typer.echo(json.dumps(_summary(found, written)))
        return
    chosen, questions = found.chosen, found.questions
    console = Console()
    wide = Console(width=max(console.width, _NARROWEST))

    def say(line: str) -> None:
        console.print(printable(line), soft_wrap=True, highlight=False, markup=False)

    known = sum(place != NONE for place in questions.right)
    size = len(questions.texts)
    refusing = 1 - known / size
    say(f"{len(found.faq.entries):,} entries; {size:,} questions, of which {known:,} have an answer there")
    table = _table(found, cpu=cpu)
    wide.print(table)
    if len(found.compared) > table.row_count:
        say(f"not shown: other ways to answer, {len(found.compared) - table.row_count}; --json has all")
    say(f"refusing everything: {refusing:.2f} of the decisions right")
    say(f"recommended: {_name(chosen)}, {_why(chosen, found.default)}")
    if chosen.decisions_right.value <= refusing:
        say("No way to answer from this FAQ decides more often rightly than refusing everything.")
    say(f"answers from a confidence of {chosen.threshold:.3f} on; calibration error {chosen.calibration_error:.2f}")
    for line in _wrong(found):
        say(line)
    if written is not None:
        say(f"written: {written}")


def _why(chosen: Decided, default: Decided | None) -> str:
    if chosen is default:
        return "which is the default: nothing is surely better on these questions"
    return "the best" if default is None else f"better than the default, {_name(default)}"


def _may_write(output: Path) -> FAQ | None:
    """The FAQ that is there, if any; raises BatchError where it is something else."""
    refuse_special(output)
    if not output.parent.is_dir():
        raise BatchError(f"{output}: there is no folder {output.parent}")
    try:
        return FAQ.load(output) if output.exists() else None
    except InvalidArgument:
        raise BatchError(f"{output} holds something else: give another --output") from None


def chosen_faq(chosen: Decided, faq: Faq, rerank_top: int, command: str) -> FAQ:
    """The file: fields of `POST /rank`. The built-in fit is not among them: it is what the service takes anyway."""
    model, match, second = chosen.ranked.configuration
    stages = {} if second is None else {"rerank_model": second.id, "rerank_top": rerank_top}
    settings: dict[str, Any] = {"model": model.id, **stages, "match": match}
    if chosen.own:
        fit = as_confidence_fit(
            chosen.line,
            model,
            second,
            rerank_top,
            match=match,
            entries=digest_of((entry.question, entry.answer) for entry in faq.entries),
            threshold=round(chosen.threshold, 4),
            rows=len(chosen.ranked.first),
            calibration_error=round(chosen.calibration_error, 4),
            fitted_by=command,
        )
        settings["confidence_fit"] = fit.model_dump(mode="json", exclude_none=True)
    return FAQ(tuple(faq.entries), settings)


def _name(each: Decided) -> str:
    model, match, second = each.ranked.configuration
    stages = model.id if second is None else f"{model.id} and then {second.id}"
    return f"{stages}, matching {match}, with {_fit(each)}"


def _fit(each: Decided) -> str:
    return "a fit of your own" if each.own else "the built-in fit"


def _table(found: _Found, *, cpu: bool) -> Table:
    compared, chosen, default = found.compared, found.chosen, found.default
    time = "CPU ms" if cpu else "ms"
    heads = ("model", "match", "fit", "first right", "decided right", "95 %", "wrong given", "refused", time)
    table = Table(*heads, box=None, padding=(0, 1, 0, 0))
    for each in [*compared[:SHOWN], *(each for each in compared[SHOWN:] if each is chosen or each is default)]:
        model, match, second = each.ranked.configuration
        right = each.decisions_right
        table.add_row(
            model.id if second is None else f"{model.id} > {second.id}",
            match,
            "own" if each.own else "built-in",
            f"{each.first_right:.2f}",
            f"{right.value:.2f}",
            f"{right.low:.2f}-{right.high:.2f}",
            f"{each.outcome.wrong_given.mean():.2f}",
            f"{each.outcome.refused_known.mean():.2f}",
            _milliseconds(each.ranked.seconds),
            style="bold" if each is chosen else "",
        )
    return table


def _milliseconds(seconds: float) -> str:
    found = 1000 * seconds
    return f"{found:,.0f}" if found >= 100 else f"{found:.3g}"


def _wrong(found: _Found) -> Iterator[str]:
    """The questions whose decision goes wrong in most of the repeats, each with what was answered."""
    chosen, faq, questions = found.chosen, found.faq, found.questions
    wrong = np.flatnonzero(chosen.outcome.right < 0.5).tolist()
    if len(wrong):
        yield f"wrong, of questions that the fit had not seen ({len(wrong)}):"
    for i in wrong:
        answered = faq.entries[chosen.ranked.first[i]]
        right = questions.right[i]
        given = chosen.outcome.given[i] >= 0.5
        if right == NONE:
            what = f"answered {answered.id} ({_short(answered.question)}), and there is no answer"
        elif not given:
            what = f"refused, and {faq.entries[right].id} has the answer"
            what += " and came first" if right == chosen.ranked.first[i] else f"; first came {answered.id}"
        else:
            what = f"answered {answered.id} ({_short(answered.question)}) instead of {faq.entries[right].id}"
        yield f"  {_short(questions.texts[i])}: {what}; confidence {chosen.outcome.chances[i]:.2f}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3].rstrip()}..."


def _summary(found: _Found, written: Path | None) -> dict[str, Any]:
    chosen, faq, questions = found.chosen, found.faq, found.questions
    rows = []
    for each in found.compared:
        model, match, second = each.ranked.configuration
        rows.append(
            {
                "model": model.id,
                "rerank_model": None if second is None else second.id,
                "match": match,
                "fit": "own" if each.own else "built-in",
                "first_right": each.first_right,
                "decisions_right": each.decisions_right.value,
                "decisions_right_95": [each.decisions_right.low, each.decisions_right.high],
                "wrong_given": float(each.outcome.wrong_given.mean()),
                "refused_known": float(each.outcome.refused_known.mean()),
                "ms_a_question": 1000 * each.ranked.seconds,
                "threshold": each.threshold,
                "calibration_error": each.calibration_error,
                "default": each is found.default,
                "recommended": each is chosen,
            }
        )
    wrong = [
        {
            "question": questions.texts[i],
            "id": "" if questions.right[i] == NONE else faq.entries[questions.right[i]].id,
            "first": faq.entries[chosen.ranked.first[i]].id,
            "answered": bool(chosen.outcome.given[i] >= 0.5),
            "confidence": float(chosen.outcome.chances[i]),
        }
        for i in np.flatnonzero(chosen.outcome.right < 0.5).tolist()
    ]
    counts = {"entries": len(faq.entries), "questions": len(questions.texts)}
    return {**counts, "configurations": rows, "wrong": wrong, "output": None if written is None else str(written)}
