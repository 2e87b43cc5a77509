"""How often the three jobs end in the right decision, on texts written for this: FAQs, policies with claims, edits.

    python -m benchmarks.decisions                     # the development parts: some three minutes
    python -m benchmarks.decisions --part test         # the parts kept back, once for each published figure
    python -m benchmarks.decisions --part fresh --only faqs --only claims   # written when all was made, measured once

The texts are those of `training/data/written`, of which these parts teach no model; the FAQs of the development part
teach the confidence of rankings, so of them only the test part says how good that is. Duplicates have a benchmark of
their own (`benchmarks/duplicates`).
"""

import csv
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from benchmarks.report import arguments, command, figures, machine, write
from semblance import FAQ, Client
from semblance.cli.app import app
from semblance.client.faq import FAQEntry
from training.data.pairs import Pair
from training.data.readers import written
from training.data.readers.written import Part, Policy

PARTS: tuple[Part, ...] = ("dev", "test", "fresh")
ENCODERS = ("avg-paraphrase", "minilm-small", "minilm")
SURE = (0.7, 0.8, 0.9)  # confidences from which on it is said how many answers are right
LABELS = ("entailed", "contradicted", "not_stated")
Section = tuple[dict[str, Any], list[str]]  # figures by name, and lines of the page


class Checked(NamedTuple):
    """Claims held against their policies."""

    answers: Sequence[tuple[str, str]]  # (right label, answered label) of each claim
    evidence: Sequence[bool]  # of each claim that a policy decides, whether the passage shown has a deciding sentence
    confidences: Sequence[float]  # of each answer

    @property
    def right(self) -> float:
        """Share of the right labels."""
        return float(np.mean([wanted == given for wanted, given in self.answers]))

    @property
    def shown(self) -> float:
        """Share of the decided claims whose evidence is right."""
        return float(np.mean(self.evidence))

    def said_from(self, least: float) -> tuple[int, int]:
        """How many answers have this confidence, and how many of these are right."""
        sure = [answer for answer, each in zip(self.answers, self.confidences, strict=True) if each >= least]
        return len(sure), sum(wanted == given for wanted, given in sure)


def main() -> None:
    """Measure, print, and write the dated result."""
    parser = arguments("python -m benchmarks.decisions", __doc__)
    parser.add_argument("--part", choices=PARTS, default="dev")
    parser.add_argument("--model", default="minilm-cross", help="reads claims and edits [default: %(default)s]")
    parser.add_argument("--only", action="append", choices=list(SECTIONS), help="these [default: all]")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    lines: list[str] = []
    with Client.local() as client:
        for name in options.only or SECTIONS:
            found, printed = SECTIONS[name](client, options.part, options.model)
            results |= found
            lines += [*printed, ""]
    about = f"{command(parser)}. {machine('onnxruntime', 'numpy')}."
    name = "-".join(["decisions", options.part, *(options.only or ())])
    write(options.out, name, "Right decisions", about, lines, results)


def measured_faqs(client: Client, part: Part, model: str) -> Section:
    """Right decisions on each FAQ by default, and after a choice on half of its questions, on the other half."""
    rows, decided = [], []
    for faq in written.faqs(part):
        by_default = [decision(client, FAQ(entries_of(faq)), *asked) for asked in faq.questions]
        rows.append({"FAQ": faq.name, **shares_of(by_default), **after_choosing(client, faq)})
        decided += by_default
    auc = roc_auc_score([each.first for each in decided], [each.confidence for each in decided])
    figure: dict[str, Any] = {"faqs": rows, "default": shares_of(decided), "auc": float(auc)}
    lines = ["## FAQs", "", figures(rows), "", "All, by default:", "", figures([figure["default"]]), ""]
    lines.append(f"AUC of confidence, right against wrong or absent: {auc:.3f}")
    return figure, lines


class Decision(NamedTuple):
    """What came of a question."""

    right: bool  # the right answer, or rightly none
    given: bool
    first: bool  # the first entry is the right one, whether given or not
    known: bool  # the FAQ has an answer
    confidence: float


def entries_of(faq: written.WrittenFAQ) -> tuple[FAQEntry, ...]:
    """The entries, as the client takes them."""
    return tuple(FAQEntry(*entry) for entry in faq.entries)


def decision(client: Client, faq: FAQ, question: str, wanted: str) -> Decision:
    """Ask an FAQ whose right entry is known; empty: it has none."""
    reply = client.answer(question, faq)
    ranked = reply.ranking.suggestions or reply.ranking.results
    given = "" if reply.entry is None else reply.entry.id
    assert reply.confidence is not None
    return Decision(given == wanted, bool(given), ranked[0].id == wanted, bool(wanted), reply.confidence)


def shares_of(decided: Sequence[Decision]) -> dict[str, float]:
    """Shares of the questions; `first_right` of those that have an answer."""
    count = len(decided)
    return {
        "first_right": sum(each.first for each in decided) / sum(each.known for each in decided),
        "decisions_right": sum(each.right for each in decided) / count,
        "wrong_given": sum(each.given and not each.right for each in decided) / count,
        "refused_known": sum(each.known and not each.given for each in decided) / count,
        "refusing_all": sum(not each.known for each in decided) / count,
    }


def measured_claims(client: Client, part: Part, model: str) -> Section:
    """Shares of right labels and right evidence, and the confusion of labels."""
    checked = claims(client, written.policies(part), model)
    counts = Counter(checked.answers)
    confusion = [{"right label": right, **{given: counts[right, given] for given in LABELS}} for right in LABELS]
    shares = f"label right {checked.right:.2f}, evidence right {checked.shown:.2f}"
    said = {str(least): checked.said_from(least) for least in SURE}
    sure = [
        {"confidence from": least, "answers": n, "right": right / n if n else 0.0} for least, (n, right) in said.items()
    ]
    lines = [f"## Claims: {len(checked.answers)}, {shares}", "", figures(confusion), "", figures(sure)]
    return {"claims right": checked.right, "evidence right": checked.shown, "said from": said}, lines


def measured_edits(client: Client, part: Part, model: str) -> Section:
    """AUC by kind of edit, and of wordings as near to each other, or as far, on both sides."""
    edited, reworded = written.edits(part), written.rewordings(part)
    kinds = edits(client, edited, model)
    same, other = ([pair for pair in (*edited, *reworded) if pair.label == label] for label in "10")
    wordings = {
        "near rewordings, edits with the rewording": reworded,
        "near rewordings, edits": same[len(edited) // 2 :] + other[: len(edited) // 2],
        "far paraphrases, edits with the paraphrase": same[: len(edited) // 2] + written.crossed_edits(part),
    }
    kinds |= {
        name: edits(client, [replace(pair, group="all") for pair in pairs], model)["all"]
        for name, pairs in wordings.items()
    }
    title = "## Edits of a sentence's meaning against other wordings of it: AUC of the paraphrase score"
    return {"edits": kinds}, [title, "", figures([{"kind": kind, "AUC": value} for kind, value in kinds.items()])]


def after_choosing(client: Client, faq: written.WrittenFAQ) -> dict[str, Any]:
    """Right decisions on every second question, by default and as `semblance choose --faq` chose on the others.

    The model that reads pairs is left out: it takes minutes for each FAQ.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "faq.csv", ("id", "question", "answer"), faq.entries)
        _write(folder / "questions.csv", ("question", "id"), faq.questions[::2])
        asked = ["choose", "--faq", str(folder / "faq.csv"), str(folder / "questions.csv"), "--json", "--local"]
        models = [part for name in ENCODERS for part in ("--model", name)]
        ran = CliRunner().invoke(app, [*asked, *models, "--output", str(folder / "faq.json")])
        assert ran.exit_code == 0, ran.output
        found, chosen = json.loads(ran.stdout), FAQ.load(folder / "faq.json")
    (taken,) = (each for each in found["configurations"] if each["recommended"])
    stages = taken["model"] + (f" > {taken['rerank_model']}" if taken["rerank_model"] else "")
    halves = {"default_on_half": FAQ(entries_of(faq)), "chosen_on_half": chosen}
    shares = {
        name: shares_of([decision(client, each, *asked) for asked in faq.questions[1::2]])["decisions_right"]
        for name, each in halves.items()
    }
    return {**shares, "by": f"{stages}, {taken['match']}, {taken['fit']}"}


def _write(path: Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


def claims(client: Client, policies: Sequence[Policy], model: str | None = None) -> Checked:
    """Each policy's claims through `POST /claims`."""
    answers: list[tuple[str, str]] = []
    evidence: list[bool] = []
    confidences: list[float] = []
    for policy in policies:
        found = client.claims(policy.document, [claim.text for claim in policy.claims], model=model)
        for claim, result in zip(policy.claims, found.results, strict=True):
            answers.append((claim.label, result.label))
            confidences.append(result.confidence)
            if claim.deciding:
                shown = "" if result.evidence is None else result.evidence.text
                evidence.append(any(sentence in shown for sentence in claim.deciding))
    return Checked(answers, evidence, confidences)


def edits(client: Client, pairs: Sequence[Pair], model: str | None = None) -> dict[str, float]:
    """AUC by kind of edit, and of all: how often a paraphrase has more of the score than an edit."""
    scores = client.similarity([(pair.a, pair.b) for pair in pairs], model=model, task="paraphrase")
    sides: dict[str, tuple[list[bool], list[float]]] = defaultdict(lambda: ([], []))
    for pair, result in zip(pairs, scores.results, strict=True):
        for kind in {pair.group, "all"}:
            sides[kind][0].append(pair.label == "1")
            sides[kind][1].append(result.score)
    return {kind: float(roc_auc_score(right, score)) for kind, (right, score) in sorted(sides.items())}


SECTIONS = {"faqs": measured_faqs, "claims": measured_claims, "edits": measured_edits}

if __name__ == "__main__":
    main()
