"""Answer ranking by one model, by another, and by both in two stages: quality and latency of `POST /rank`.

    python benchmarks/rank_stages.py --first avg-paraphrase --second pwim-qa      # half an hour, most of it the pool

Each question of a test set is asked with its own candidates, and a sample of WikiQA's questions also with every
answer of that set, the use case of two stages. MAP and MRR are trec_eval's, over the questions that have a
right answer. Every kind of ranking has its own server. Each question is asked twice, one at a time, and both latencies
are reported: the second time the candidates' embeddings are cached.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from benchmarks.report import RESULTS, machine, table, write  # noqa: E402 - the repository is not installed
from benchmarks.servers import SERVICE, Server, free_port  # noqa: E402
from training.corpora.readers import answers  # noqa: E402
from training.objectives.metrics import ranked  # noqa: E402
from training.pairs import Pair  # noqa: E402

SETS: Mapping[str, Callable[[], list[Pair]]] = {
    "WikiQA": lambda: answers.wikiqa("test"),
    "TrecQA raw": lambda: answers.trecqa("test-raw"),
    "TrecQA clean": lambda: answers.trecqa("test-clean"),
}
POOL = "WikiQA, all answers"


@dataclass(frozen=True)
class Question:
    """A question, its candidates, and whether each is right."""

    text: str
    candidates: list[str]
    right: list[bool]


@dataclass(frozen=True)
class Row:
    """One way of ranking on one set."""

    set: str
    ranking: str
    questions: int
    candidates: float  # mean per question
    map: float
    mrr: float
    first_p50: float  # milliseconds per question, first time
    first_p95: float
    again_p50: float  # second time
    again_p95: float


def answerable(pairs: Sequence[Pair]) -> list[Question]:
    """The questions that have a right answer among their candidates."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.group, []).append(pair)
    return [
        Question(group[0].a, [pair.b for pair in group], [pair.label == "1" for pair in group])
        for group in groups.values()
        if any(pair.label == "1" for pair in group)
    ]


def pooled(questions: Sequence[Question], answers: Sequence[str], count: int, seed: int) -> list[Question]:
    """A sample of the questions, each with every distinct answer of the set; unjudged answers count as wrong."""
    distinct = list(dict.fromkeys(answers))
    sample = random.Random(seed).sample(list(questions), min(count, len(questions)))
    found = []
    for question in sample:
        right = {text for text, is_right in zip(question.candidates, question.right, strict=True) if is_right}
        found.append(Question(question.text, distinct, [text in right for text in distinct]))
    return found


def ask(port: int, body: Mapping[str, object]) -> tuple[list[int], float]:
    """The candidates' order, best first, and the milliseconds it took."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/rank", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    started = time.perf_counter()
    with urllib.request.urlopen(request, timeout=900) as response:
        content = response.read()
    milliseconds = (time.perf_counter() - started) * 1000
    return [result["index"] for result in json.loads(content)["results"]], milliseconds


def quality_of(questions: Sequence[Question], orders: Sequence[Sequence[int]]) -> dict[str, float]:
    """MAP and MRR of one order of each question's candidates, best first."""
    scores, right, asked = [], [], []
    for number, (question, order) in enumerate(zip(questions, orders, strict=True)):
        places = np.empty(len(order))
        places[list(order)] = np.arange(len(order))
        scores += (-places).tolist()  # ranks, because the scores of two stages are not comparable
        right += question.right
        asked += [str(number)] * len(order)
    return ranked(scores, right, asked)


def measure(name: str, ranking: str, options: Mapping[str, object], questions: Sequence[Question], port: int) -> Row:
    """Ask every question twice; quality is that of the first answers."""
    orders: list[list[int]] = []
    times: list[list[float]] = [[], []]
    for turn in (0, 1):
        for question in questions:
            order, milliseconds = ask(port, {"query": question.text, "candidates": question.candidates, **options})
            times[turn].append(milliseconds)
            if turn == 0:
                orders.append(order)
    quality = quality_of(questions, orders)
    return Row(
        set=name,
        ranking=ranking,
        questions=len(questions),
        candidates=statistics.mean(len(question.candidates) for question in questions),
        map=quality["map"],
        mrr=quality["mrr"],
        first_p50=statistics.median(times[0]),
        first_p95=float(np.percentile(times[0], 95)),
        again_p50=statistics.median(times[1]),
        again_p95=float(np.percentile(times[1], 95)),
    )


def main() -> None:
    """Measure, print a table, and write the dated results, JSON and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", default="avg-paraphrase", help="the model of the first stage")
    parser.add_argument("--second", default="pwim-qa", help="the model of the second stage")
    parser.add_argument("--top", type=int, nargs="*", default=[10, 50], help="candidates that the second stage orders")
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    parser.add_argument("--pool-questions", type=int, default=20, help="asked with every answer of WikiQA; 0: none")
    parser.add_argument("--questions", type=int, help="only so many of each set, for a trial")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    sets = {name: answerable(read()) for name, read in SETS.items()}
    if options.pool_questions:
        answers = [pair.b for pair in SETS["WikiQA"]()]
        sets[POOL] = pooled(sets["WikiQA"], answers, options.pool_questions, options.seed)
    if options.questions:
        sets = {name: questions[: options.questions] for name, questions in sets.items()}
    rankings: dict[str, dict[str, object]] = {
        f"{options.first} alone": {"model": options.first},
        f"{options.second} alone": {"model": options.second},
    }
    for top in options.top:
        two = {"model": options.first, "rerank_model": options.second, "rerank_top": top}
        rankings[f"{options.first}, then {options.second} on {top}"] = two
    rows = []
    for name, questions in sets.items():
        for ranking, asked in rankings.items():
            port = free_port()
            environment = {
                "SEMBLANCE_PORT": str(port),
                "SEMBLANCE_MODELS_DIR": str(options.models.absolute()),
                "SEMBLANCE_LOG_LEVEL": "warning",
                "SEMBLANCE_REQUEST_TIMEOUT": "900",
                "OMP_NUM_THREADS": "1",
            }
            with Server(SERVICE, port, environment):
                rows.append(measure(name, ranking, asked, questions, port))
            print(rows[-1], file=sys.stderr, flush=True)
    write_result(options, rows)


def write_result(options: argparse.Namespace, rows: Sequence[Row]) -> None:
    """Write the table, the command and the machine."""
    tops = " ".join(map(str, options.top))
    command = (
        f"python benchmarks/rank_stages.py --first {options.first} --second {options.second} --top {tops} "
        f"--pool-questions {options.pool_questions} --seed {options.seed}"
        + (f" --questions {options.questions}" if options.questions else "")
    )
    about = (
        f"`{command}`: `POST /rank`, one question at a time on loopback, one worker; milliseconds a question as the "
        "client sees them, asked the first time and again (with embeddings kept). Questions without a right answer are "
        f"left out. `{POOL}`: {options.pool_questions} questions, each with all distinct answers of the test set, of "
        "which those not judged for it count as wrong. Texts are cut where the models cut them. "
        f"Load at the end: {os.getloadavg()[0]:.1f}. {machine('onnxruntime', 'numpy', 'pytrec_eval-terrier')}."
    )
    lines = table(
        ["set", "ranking", "questions", "candidates", "MAP", "MRR", "p50 ms", "p95 ms", "again p50", "again p95"],
        [
            [
                *(row.set, row.ranking, str(row.questions), f"{row.candidates:.1f}"),
                *(f"{row.map:.4f}", f"{row.mrr:.4f}"),
                *(f"{value:.1f}" for value in (row.first_p50, row.first_p95, row.again_p50, row.again_p95)),
            ]
            for row in rows
        ],
    )
    result = {"command": command, "rows": [asdict(row) for row in rows]}
    write(options.out, "rank-stages", "Ranking in one stage and in two", about, lines, result)


if __name__ == "__main__":
    main()
