"""MAP on development questions by `rerank_top`, the number of candidates that the second stage ranks again.

    python benchmarks/rerank_top.py

Of WikiQA's and TrecQA's development questions that have a right answer, each with its own candidates, and each with
all answers of that part (unjudged ones count as wrong). No test question is read. Scores are those of the
published models through their graphs; the order is what `POST /rank` gives.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.rank_stages import Question, answerable, pooled, quality_of  # noqa: E402 - the repository is not installed
from benchmarks.report import RESULTS, machine, table, write  # noqa: E402
from training.corpora.readers import answers  # noqa: E402
from training.publishing.runtime import PublishedModel  # noqa: E402

TOPS = (3, 5, 8, 10, 15, 20, 30, 50)


def orders(first: PublishedModel, second: PublishedModel, question: Question, tops: Sequence[int]) -> list[list[int]]:
    """The candidates by the first model alone, then with each number of them ordered again by the second."""
    asked = [question.text] * len(question.candidates)
    by_first = np.argsort(-first.similarity(asked, question.candidates).score, kind="stable")
    best = by_first[: max(tops)].tolist()
    again = second.similarity([question.text] * len(best), [question.candidates[i] for i in best]).score
    score = dict(zip(best, again.tolist(), strict=True))
    found = [by_first.tolist()]
    for top in tops:
        head = sorted(by_first[:top].tolist(), key=lambda i: -score[i])
        found.append([*head, *by_first[top:].tolist()])
    return found


def main() -> None:
    """Measure, print a table, and write the dated results, JSON and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", default="avg-paraphrase", help="the model of the first stage")
    parser.add_argument("--second", default="pwim-qa", help="the model of the second stage")
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    first, second = (PublishedModel(options.models / name) for name in (options.first, options.second))
    sets = {}
    for name, pairs in (("WikiQA dev", answers.wikiqa("dev")), ("TrecQA dev", answers.trecqa("dev-raw"))):
        sets[name] = answerable(pairs)
        sets[f"{name}, all answers"] = pooled(sets[name], [pair.b for pair in pairs], len(sets[name]), seed=1)
    lines, rows = [], []
    for name, questions in sets.items():
        found = [orders(first, second, question, TOPS) for question in questions]
        maps = [quality_of(questions, [each[i] for each in found])["map"] for i in range(len(TOPS) + 1)]
        candidates = sum(len(question.candidates) for question in questions) / len(questions)
        rows.append({"set": name, "questions": len(questions), "candidates": candidates, "map": maps})
        lines.append([name, str(len(questions)), f"{candidates:.0f}", *(f"{value:.4f}" for value in maps)])
        print(rows[-1], file=sys.stderr, flush=True)
    command = f"python benchmarks/rerank_top.py --first {options.first} --second {options.second}"
    about = (
        f"`{command}`: MAP over the development questions that have a right answer, by how many of the best "
        f"candidates of the first model the second one orders again; 0: none. "
        f"{machine('onnxruntime', 'numpy', 'pytrec_eval-terrier')}."
    )
    head = ["set", "questions", "candidates", *(str(top) for top in (0, *TOPS))]
    result = {"command": command, "tops": [0, *TOPS], "rows": rows}
    write(options.out, "rerank-top", "How many candidates to order again", about, table(head, lines), result)


if __name__ == "__main__":
    main()
