"""What reads a caller's text takes linear time: hostile texts of two lengths, in CPU seconds of this process.

What is linear takes eight times as long for the longer ones, what is quadratic 64 times.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product
from pathlib import Path
from time import process_time

import pytest

from core.attributes import attributes
from core.facts import difference, facts_of
from core.manifest import Manifest
from core.other_amounts import said_in
from core.same_words import same_words
from core.subwords import has_text, load_tokenizer
from core.text import split_words
from semblance.errors import BatchError
from semblance.tables.documents import text_of_file
from semblance.tables.formats import open_source
from service.observe.logs import JsonFormatter, TextFormatter
from service.scoring.documents import sentences_in
from service.scoring.evidence import Found, Passage, stems_of
from service.scoring.markup import plain
from service.scoring.sentences import spans_of
from service.scoring.verdicts import Reading, verdict
from tests.harness import fakes

SHORT, LONG = 600, 4_800  # characters
GROWTH = 3.0 * LONG / SHORT
NOISE_SECONDS = 0.02
SEEDS = (
    *("-", "a-", "- ", "1,", "1.", "7", ",", '"', "'", "(", "[", "](", "![", "[a](", "{", " ", "\t", "\n", ".", ".."),
    *("*", "**", "**a", "__a__ ", "_", "=", "#", "|", "| ", "a\tb\n", "a | b | c\n", "- a\n", "A.", "n't", "x "),
    *("\u3000", "\u201d", "two ", "a-1 ", "a-1-", "1 000 ", "at least ", "turn ", "a", "May ", "1.2.3", "1x", "no. "),
    *("![a](b 'c ", "[a](b(c", "<!--", "~~a", "- [ ] ", "- [ ] a\n", "!=", "<", "> 1 "),
    *("\\", "\\-", "&lt;", "&a", "<b ", "<sup>1", "<br>"),
    *("half a ", '-1,"([ .a-', " :-|\t"),
    *("\ufdfa", "\u2474", "\U0001f44d"),  # the first stands for 18 characters
    *("Mon, ", "on Tue ", "Sat and Mon ", "below the age of ", "twenty-", "5'6\"", "12 345.9", "9 or later "),
    *("1 to 2 million ", "a quarter of ", "and a half ", "10+", "(617) 227-", "617-", "Sept. ", "max. "),
    *(".[1]", "so.[", "us "),
    *("1/2 ", "1/", "\u00bd", "1-1/2-", "1 1/2 to ", "2 and 1/2 and ", "3/4 of "),
    # of documents: cells, items, headings, blank lines between
    *("a,b\n", "a, b\n", 'a,"b\n', "a;b\n1;2\n\n", "a|", "-\n", "a.\n\n", "\t\n", "A b\n", "- a:\n", "\n \t", ". A"),
    "".join(" " * (n % 300) + "- a:\n" for n in range(150)),
)  # fmt: skip
AROUND = (("", ""), ("a\tb\n", "\tx\n"), ("|a|b|\n|", "|x|\n"))
OF_DOCUMENTS = ("sentences_in", "spans_of", "plain")  # these alone know tables
ROOT = Path(__file__).parents[3]


def word_pieces() -> Callable[[str], object]:
    """The tokenizer of the default model."""
    folder = ROOT / "models/minilm-small"
    manifest = Manifest.load(folder)
    tokenizer = load_tokenizer(manifest.path_of(folder, manifest.tokenizer))
    return lambda text: tokenizer.encode(text, manifest.limits.max_tokens)


def log_lines(text: str) -> None:
    """A record that names the text, in each style."""
    record = logging.LogRecord("service", logging.INFO, __file__, 1, "%s", (text,), None)
    record.fields = {"path": text}
    for style in (JsonFormatter, TextFormatter):
        style().format(record)


def verdict_of(text: str) -> None:
    """As a claim and as a passage."""
    for claim, passage in ((text, "The fee is 5 EUR."), ("The fee is 5 EUR.", text)):
        verdict(claim, [Reading(Found(0, 0.5, 0.5), Passage(0, 0, 0, passage, passage), 0.4, 0.4)])


READERS: dict[str, Callable[[str], object]] = {
    "sentences_in": sentences_in,
    "spans_of": lambda text: list(spans_of(text)),
    "plain": plain,
    "stems_of": lambda text: list(stems_of(text)),
    "facts_of": facts_of,
    "attributes": attributes,
    "same_words": same_words,
    "said_in": said_in,
    "verdict": verdict_of,
    "has_text": has_text,
    "split_words": split_words,
    "words": lambda text: fakes.tokenizer().encode(text, fakes.MAX_TOKENS),
    "word pieces": word_pieces(),
    "log": log_lines,
}


def texts_of(size: int, *, tables: bool) -> Iterable[str]:
    """Hostile texts of about a size, also within tables."""
    for seed in SEEDS:
        for before, after in AROUND if tables and ("\n" in seed or "|" in seed or "\t" in seed) else AROUND[:1]:
            yield before + (seed * (size // len(seed) + 1))[:size] + after


def seconds_of(read: Callable[[str], object], text: str) -> float:
    began = process_time()
    read(text)
    return process_time() - began


def grows_faster_than_text(read: Callable[[str], object], short: str, long: str) -> bool:
    """Whether the longer text takes more than three times what its length explains, each time that it is tried."""
    return all(seconds_of(read, long) > GROWTH * seconds_of(read, short) + NOISE_SECONDS for _ in range(3))


@pytest.mark.parametrize("reader", READERS)
def test_time_is_linear(reader: str) -> None:
    read, tables = READERS[reader], reader in OF_DOCUMENTS
    slow = [
        short[:20]
        for short, long in zip(texts_of(SHORT, tables=tables), texts_of(LONG, tables=tables), strict=True)
        if grows_faster_than_text(read, short, long)
    ]
    assert slow == []


def test_facts_of_very_many_kinds_are_compared_in_linear_time() -> None:
    words = ["".join(letters) for letters in product("abcdefghijklmnop", repeat=3)]

    def compare(text: str) -> None:
        difference(facts_of(text), facts_of(f"{text} and more"))

    short, long = (" B ".join(words[:count]) + " B" for count in (400, 3200))
    assert not grows_faster_than_text(compare, short, long)


def test_files_of_strangers_are_read_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"

    def read(text: str) -> None:
        path.write_text("a,b\n" + text, encoding="utf-8", newline="")
        try:
            for _ in open_source(path).chunks(0, 1000):
                pass
        except BatchError:  # it holds something else
            pass

    def read_header(text: str) -> None:
        path.write_text('a,"' + text, encoding="utf-8", newline="")
        with suppress(BatchError):
            open_source(path)

    quotes = ('"', '""', '"\n', ',"', 'x"', '",', '"a"b', 'a,"b\n')
    seeds = (*quotes, "\n", "\r", ",", ",\n", "a,b\n", "\t", ";", " ", "\u3000")
    slow = [seed for seed in seeds if grows_faster_than_text(read, seed * (SHORT * 4), seed * (LONG * 4))]
    slow += [seed for seed in seeds if grows_faster_than_text(read_header, seed * (SHORT * 4), seed * (LONG * 4))]
    assert slow == []


@pytest.mark.parametrize(
    ("before", "seed"),
    [
        *(("<p><a>", seed) for seed in ("x<sup>1</sup>", "10<sup>6</sup>", "a<svg></svg>", "<s>a</s>b", " ")),
        ("<table><tr>", "<td colspan=20>a"),
        ("<table>", "<tbody><tr><td>a"),
        ("<table><thead>", "<tr><td>a"),
        ("", "<table><caption>a</caption><tr><td>b</table>"),
        ("<table>", "<caption>a</caption> <tr><td>b"),
        ("<table><tr>" + "<td rowspan=99999>a" * 9, "<tr><td>a"),
        ("<p>" + "<font>" * 100, "a<br>"),
    ],
)
def test_pages_are_read_in_linear_time(before: str, seed: str, tmp_path: Path) -> None:
    pytest.importorskip("markdownify", reason="no markdownify: pip install '.[documents]'")

    def read(text: str) -> None:
        (tmp_path / "in.html").write_text(f"a{before}{text}")
        text_of_file(tmp_path / "in.html")

    assert not grows_faster_than_text(read, seed * SHORT, seed * LONG)


@pytest.mark.parametrize("seed", ["<span hidden>a", "a<!-- a --><q>"])
def test_pages_without_end_within_each_other_are_refused_in_linear_time(seed: str, tmp_path: Path) -> None:
    pytest.importorskip("markdownify", reason="no markdownify: pip install '.[documents]'")

    def read(text: str) -> None:
        (tmp_path / "in.html").write_text(text)
        with pytest.raises(BatchError, match="too deeply"):
            text_of_file(tmp_path / "in.html")

    assert not grows_faster_than_text(read, seed * 5 * SHORT, seed * 5 * LONG)


def test_what_is_quadratic_is_seen() -> None:
    def read(text: str) -> int:
        return sum(text[start:].count("b") for start in range(0, len(text), 8))

    assert grows_faster_than_text(read, "a" * SHORT * 20, "a" * LONG * 20)
