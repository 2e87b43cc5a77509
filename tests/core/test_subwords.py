"""Subwords: equal to the library's own answers, without special tokens; bounded; bad files refused."""

import json
import threading
import tracemalloc
from pathlib import Path

import pytest

from core.errors import TokenizerError
from core.subwords import Subwords, fit_together, load_tokenizer
from core.tokenizer import Tokenizer
from tests.harness import toy_wordpiece as toys

tokenizers = pytest.importorskip("tokenizers", reason="missing here: pip install '.[service]'")

TEXTS = (
    "A cat sat on the mat.",
    "Catmat, sat!",
    "  café\tCAFÉ\n",
    "the [SEP] cat [CLS]",
    "\u732b\u304c the\u3002cat",
    "\U0001f600 cat\u0000s",
    "",
    " \t",
    "x" * 101,
)


@pytest.fixture(scope="module")
def wordpiece() -> Subwords:
    return toys.wordpiece()


@pytest.mark.parametrize("text", TEXTS)
def test_ids_are_those_of_the_library(wordpiece: Subwords, text: str) -> None:
    expected = theirs().encode(text, add_special_tokens=False)
    found = wordpiece.encode(text, 50)
    assert list(found.ids) == expected.ids
    assert found.words == len(set(expected.word_ids))
    assert not found.truncated


def test_special_tokens_in_a_text_are_words(wordpiece: Subwords) -> None:
    ids = wordpiece.encode("[SEP] [PAD] [CLS]", 50).ids
    assert not {toys.CLS, toys.SEP, 0} & set(ids)


def test_what_is_unknown_and_what_is_cut(wordpiece: Subwords) -> None:
    found = wordpiece.encode("the \U0001f600 cat sat " + "y" * 101, 3)
    assert (found.words, found.unknown, found.truncated) == (5, 2, True)
    assert [wordpiece.token(i) for i in found.ids] == ["the", "[UNK]", "cat"]
    assert wordpiece.encode("the cat", 2).truncated is False


def test_a_lone_surrogate_is_dropped(wordpiece: Subwords) -> None:
    assert wordpiece.encode("the\ud83d cat", 9) == wordpiece.encode("the cat", 9)


@pytest.mark.parametrize(
    "part", ["the cat sat ", "the,cat,", "\u732b", "\ufdfa\u2014", "cat\u3002", "e\u0301 ", "\u0928\u093f\u092e "]
)
@pytest.mark.parametrize("moved", range(3))
def test_a_long_text_reads_the_same_in_parts(wordpiece: Subwords, part: str, moved: int) -> None:
    text = (part * 3000)[moved:3400]
    assert list(wordpiece.encode(text, 10_000).ids) == theirs().encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("part", ["the cat sat ", "\u732b", "\ufdfa", "x", "\u0301"])
def test_a_long_text_is_read_little_further_than_the_limit(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    wordpiece = toys.wordpiece()
    read: list[int] = []
    inner = wordpiece._tokenizer

    class Counted:
        def encode(self, text: str, **options: bool) -> object:
            read.append(len(text))
            return inner.encode(text, **options)

        def encode_batch(self, texts: list[str], **options: bool) -> list[object]:
            return [self.encode(text, **options) for text in texts]

    monkeypatch.setattr(wordpiece, "_tokenizer", Counted())
    found = wordpiece.encode((part * 100_000)[:100_000], 128)
    many = part in ("the cat sat ", "\u732b")  # the others are one word, or none, however long
    assert sum(read) <= (2000 if many else 10_000)
    assert found.truncated
    if part == "x":
        assert (found.words, found.unknown, len(found.ids)) == (1, 1, 1)


def test_other_threads_go_on_while_a_long_word_is_read(wordpiece: Subwords) -> None:
    """Such as the event loop."""
    wakings, ended = 0, threading.Event()

    def wakes() -> None:
        nonlocal wakings
        while not ended.wait(0.0005):
            wakings += 1

    thread = threading.Thread(target=wakes)
    thread.start()
    before = wakings
    for _ in range(25):
        wordpiece.encode("\ufdfa" * 200_000, 128)
    during = wakings - before
    ended.set()
    thread.join()
    assert during > 50  # some ten where the library stops them


def test_what_nobody_sees_before_a_text_takes_no_room(wordpiece: Subwords) -> None:
    assert wordpiece.encode(" \u200b" * 50_000 + "the cat", 128)[:2] == wordpiece.encode("the cat", 128)[:2]


def test_ids_of_added_tokens_count(wordpiece: Subwords) -> None:
    library = theirs()
    library.add_tokens(["newword"])
    assert len(Subwords(library.to_str())) == len(wordpiece) + 1


def test_it_saves_and_loads(wordpiece: Subwords, tmp_path: Path) -> None:
    wordpiece.save(tmp_path / "a.json")
    again = load_tokenizer(tmp_path / "a.json")
    assert isinstance(again, Subwords)
    assert len(again) == len(wordpiece)
    assert all(again.encode(text, 50) == wordpiece.encode(text, 50) for text in TEXTS)
    again.save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_the_file_says_which_kind_it_is(tmp_path: Path) -> None:
    Tokenizer(["the", "cat"]).save(tmp_path / "words.json")
    assert isinstance(load_tokenizer(tmp_path / "words.json"), Tokenizer)


@pytest.mark.parametrize("kind", ["bytes", "unigram"])
def test_other_kinds_read_as_the_library_does(kind: str) -> None:
    """Byte-level BPE, and Unigram of SentencePiece."""
    models, trainers, before = tokenizers.models, tokenizers.trainers, tokenizers.pre_tokenizers
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    if kind == "bytes":
        library = tokenizers.Tokenizer(models.BPE())
        library.pre_tokenizer, library.decoder = (
            before.ByteLevel(add_prefix_space=False),
            tokenizers.decoders.ByteLevel(),
        )
        trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=special, show_progress=False)
    else:
        library = tokenizers.Tokenizer(models.Unigram())
        library.pre_tokenizer = before.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="<unk>", show_progress=False)
    library.train_from_iterator(["the cat sat on the mat, the big cat", "a dog ran"] * 3, trainer)
    ours = Subwords(library.to_str())
    library.encode_special_tokens = True
    for text in (*TEXTS[:2], *TEXTS[3:6], "the cat  sat " * 2000, "thecatsat" * 2000):
        expected = library.encode(text, add_special_tokens=False).ids
        for limit in (5, 128, 100_000):
            found = ours.encode(text, limit)
            assert list(found.ids) == expected[:limit]
            assert found.truncated == (len(expected) > limit)
    assert ours.encode(" \u200b\n", 5)[:4] == ((), 0, 0, False)
    assert "".join(map(ours.token, ours.encode("the cat", 9).ids)).replace("\u2581", " ").strip() == "the cat"


@pytest.mark.parametrize(("a", "b", "most"), [(3, 4, 9), (3, 9, 9), (9, 3, 9), (9, 9, 9), (20, 30, 7), (1, 20, 7)])
def test_two_texts_are_cut_as_the_library_cuts_them(a: int, b: int, most: int) -> None:
    library = theirs()
    library.enable_truncation(most, strategy="longest_first")
    places = library.encode("the " * a, "cat " * b, add_special_tokens=False).sequence_ids
    assert fit_together(a, b, most) == (places.count(0), places.count(1))


def test_a_large_id_takes_no_room(tmp_path: Path) -> None:
    """A file of some bytes may name any."""
    model = {"type": "WordPiece", "unk_token": "a", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    path = tmp_path / "tokenizer.json"
    path.write_text(changed(model=model | {"vocab": {"a": 0, "the": 400_000_000}}, added_tokens=[]))
    tracemalloc.start()
    found = load_tokenizer(path)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.encode("the", 9).ids == (400_000_000,)
    assert len(found) == 400_000_001
    assert taken < 64 << 20


PANICS = {"type": "Precompiled", "precompiled_charsmap": "AAAA/////w=="}
WITHOUT = dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor"))


def test_what_the_library_raises_and_its_panics_are_refusals_that_name_the_file(tmp_path: Path) -> None:
    """A panic is no Exception: it would end the process."""
    path = tmp_path / "tokenizer.json"
    path.write_text(changed(normalizer=PANICS))
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: cannot .*Panic"):
        load_tokenizer(path).encode("the cat", 9)
    words = {"type": "WordLevel", "vocab": {"the": 0, "cat": 1}, "unk_token": "[ABSENT]"}
    path.write_text(changed(model=words, added_tokens=[], **WITHOUT))
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: cannot read a text"):
        load_tokenizer(path).encode("of none of them", 9)


def theirs() -> "tokenizers.Tokenizer":
    tokenizer = tokenizers.Tokenizer.from_str(toys.wordpiece_json())
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    return tokenizer


def changed(**fields: object) -> str:
    return json.dumps(json.loads(toys.wordpiece_json()) | fields)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read as a tokenizer file"),
        ("[]", "tokenizer format 'list'"),
        (changed(normalizer={"type": "none"}), "cannot be read as a tokenizer.json"),
        (changed(model={"type": "WordPiece", "vocab": 3}), "cannot be read as a tokenizer.json"),
        (changed(model={"type": "WordPiece", "unk_token": "a", "vocab": {}, "continuing_subword_prefix": "##",
                        "max_input_chars_per_word": 100}, added_tokens=[]), "no entry in its vocabulary"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(TokenizerError, match=message):
        load_tokenizer(path)


def test_a_space_before_a_long_text_is_read_as_before_a_short_one() -> None:
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"\u0120a": 0, "a": 1, "x": 2}, unk_token="x"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = Subwords(made.to_str())
    assert tokenizer.encode(" a" * 2000, 3).ids == tokenizer.encode(" a" * 3, 3).ids == (0, 0, 0)
