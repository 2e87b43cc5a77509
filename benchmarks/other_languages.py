"""Questions in six languages about English FAQs: how often the right entry is first (docs/how-to/other-languages.md).

    python -m benchmarks.other_languages                          # minilm and minilm-small; 10 s of CPU
    python -m benchmarks.other_languages path/to/a/model minilm   # others, by id or folder

The 60 everyday questions, ten of each language, are in `other_languages.tsv`; the two FAQs, of 25 entries each, are in
the test part of `training/data/written`. No model here was trained on either or chosen by them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress
from pathlib import Path
from typing import NamedTuple

from sklearn.preprocessing import normalize

from benchmarks.report import ROOT, arguments, command, figures, machine, write
from training.data.files import read_table
from training.data.readers import written
from training.publish.runtime import PublishedModel

MODELS = ("minilm", "minilm-small")
FOLDERS = ("models", "own-models")
FILE = Path(__file__).with_suffix(".tsv")
# What stands for an entry among the candidates.
READINGS: dict[str, Callable[[str, str], str]] = {
    "by its answer": lambda _, answer: answer,
    "by its question": lambda question, _: question,
    "by both": lambda question, answer: f"{question} {answer}",
}


class Asked(NamedTuple):
    """A question, and where its right entry is."""

    language: str
    text: str
    faq: str
    place: int


def questions() -> tuple[dict[str, list[tuple[str, str]]], list[Asked]]:
    """The entries (question, answer) of each FAQ, and the questions about them."""
    faqs = {faq.name: faq.entries for part in written.PARTS if part != "train" for faq in written.faqs(part)}
    places = {(name, entry): i for name, entries in faqs.items() for i, (entry, _, _) in enumerate(entries)}
    rows = read_table(FILE, FILE.name, ("faq", "language", "question", "id"))
    asked = [
        Asked(row.text("language"), row.text("question"), row.text("faq"), places[row.text("faq"), row.text("id")])
        for row in rows
    ]
    named = {each.faq for each in asked}
    return {name: [(q, a) for _, q, a in entries] for name, entries in faqs.items() if name in named}, asked


def first_right(model: PublishedModel, entries: dict[str, list[tuple[str, str]]], asked: Sequence[Asked]) -> list[bool]:
    """Of each reading, one after another, whether the right entry of each question has the highest cosine."""
    found = []
    queries = normalize(model.embed([each.text for each in asked], "query"))
    for reading in READINGS.values():
        faqs = {
            name: normalize(model.embed([reading(question, answer) for question, answer in own], "passage"))
            for name, own in entries.items()
        }
        found += [
            int((faqs[each.faq] @ vector).argmax()) == each.place for each, vector in zip(asked, queries, strict=True)
        ]
    return found


def folder_of(name: str) -> Path:
    """The folder of a model by its id or its path."""
    known = [ROOT / folder / name for folder in FOLDERS]
    return next((folder for folder in known if (folder / "manifest.json").is_file()), Path(name))


def main() -> None:
    """Measure, print, and write the dated result, Markdown and JSON."""
    parser = arguments("python -m benchmarks.other_languages", __doc__)
    parser.add_argument("ids", nargs="*", default=MODELS, metavar="MODEL", help="an id, or a model's folder")
    options = parser.parse_args()
    entries, asked = questions()
    languages = sorted({each.language for each in asked})
    rows = []
    for name in options.ids:
        right = first_right(PublishedModel(folder_of(name)), entries, asked)
        parts = [right[i : i + len(asked)] for i in range(0, len(right), len(asked))]
        by_language = Counter(question.language for part in parts for question in compress(asked, part))
        row = {reading: sum(part) for reading, part in zip(READINGS, parts, strict=True)}
        rows.append({"model": Path(name).name, **row, **{one: by_language[one] for one in languages}})
    about = (
        f"{command(parser)}: first right entry of {len(next(iter(entries.values())))} of an "
        f"English FAQ, for {len(asked)} questions in other languages, as many of each; of a language all three ways "
        f"together. {machine('onnxruntime', 'numpy')}."
    )
    write(options.out, "other-languages", "Questions in other languages", about, [figures(rows)], {"rows": rows})


if __name__ == "__main__":
    main()
