"""Analyses of the gate by part of speech and by dependency label: tags, parses, and what is averaged."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests import toys
from training.analyses.analysis import AnalysisError, Options
from training.analyses.syntax import dependencies, gate, gate_labels
from training.analyses.syntax.dependencies import parses, read_postscript, stanford_labels
from training.analyses.trained import Trained
from training.architectures import ArchitectureConfig, GRANConfig, WordAveragingConfig
from training.recipes import find

# As link-parser 5.12 prints them.
PRINTED = """verbosity set to 1
Found 12 linkages (12 had no P.P. violations)
	Linkage 1, cost vector = (UNUSED=0 DIS= 1.00 LEN=20)
[(LEFT-WALL)(the)(old.a)(king.n)(was.v-d)(buried.v-d)(in.r)(a)(small.a)(church.s)
(near.p)(London.l)(.)]
[[0 12 0 (Xp)][0 5 0 (WV)][0 3 0 (Wd)][1 3 0 (Ds**x)][2 3 0 (A)][3 4 0 (Ss*s)][4 5 0 (Pv)]
[5 10 0 (MVp)][5 6 -1324214448 (MVp)][6 9 1 (Js)][9 10 1 (Mp)][7 9 2 (Ds**x)][7 8 2 (PHc)][8 9 3 (A)]
[10 11 3 (Js)]]
[0]

No complete linkages found.
[(calves.n)(will.v)(emit.v)(snorts.n)]
[[0 1 0 (Sp)][1 2 0 (I)][2 3 0 (Op)]]
[0]

No complete linkages found.
[(LEFT-WALL)(blah[?].v)(zxcv[?].n)(of)([of])([the])(the)(12)(.)]
[[0 8 0 (Xp)][0 1 0 (Wa)][1 2 0 (Os)][2 3 0 (Mf)][3 7 0 (Jp)][6 7 1 (DD)]]
[0]

"""


def trained(config: ArchitectureConfig | None = None) -> Trained:
    recipe = replace(find("gran-avg"), architecture=config or WordAveragingConfig())
    return Trained(recipe, toys.model(config).eval(), toys.tokenizer(), toys.table().rows)


def parse(words: str, *links: tuple[int, int, str]) -> dependencies.Parse:
    return dependencies.Parse(["LEFT-WALL", *words.split()], [dependencies.Link(*link) for link in links])


def labelled(found: dependencies.Parse) -> dict[str, str | None]:
    return dict(zip(found.plain(), stanford_labels(found), strict=True))


def test_words_keep_their_case_and_sentences_that_fold_to_others_are_left_out() -> None:
    assert gate.cased_words("Dr. Who didn't stop.") == ["Dr", ".", "Who", "did", "n't", "stop", "."]
    assert gate.cased_words("Caf\u00e9s are open") is None


def test_sentences_are_tagged_when_short_enough_and_cut_alike() -> None:
    def tag(text: str) -> list[tuple[str, str]]:
        return [(word, "X") for word in text.replace("cat-like", "cat like").split(" ")]

    texts = ["Two words", "The old dog sleeps", "word " * 16, "The dog is big ."]
    assert list(gate.sentences(texts, tag)) == [
        (["The", "old", "dog", "sleeps"], ["X"] * 4),
        (["The", "dog", "is", "big", "."], ["X"] * 5),
    ]
    assert list(gate.sentences(texts, lambda text: [(text, "X")])) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it leaves its lexicon's file open
def test_the_tagger_needs_no_download() -> None:
    tagged = gate.pattern_tagger()("The old man carries 3 boats to London .")
    assert [tag for _, tag in tagged] == ["DT", "JJ", "NN", "VBZ", "CD", "NNS", "TO", "NNP", "."]


def test_a_word_in_pieces_weighs_the_mean_of_its_pieces() -> None:
    assert gate.word_norms([(1,), (2, 3), (4,)], [5.0, 1.0, 3.0, 7.0]) == [5.0, 2.0, 7.0]


def test_gate_norms_are_sums_of_the_gate_and_unmoved_by_neighbours() -> None:
    model = trained(GRANConfig())
    both, alone = gate.gate_norms(model.model.encoder, [(1, 2, 3), (4,)]), gate.gate_norms(model.model.encoder, [(4,)])
    assert [len(each) for each in both] == [3, 1]
    assert both[1] == pytest.approx(alone[0], abs=1e-5)
    assert all(0 < norm < toys.DIM for each in both for norm in each)


def test_what_a_word_adds_is_its_vector_times_the_gate() -> None:
    encoder = trained(GRANConfig()).model.encoder
    found = gate.gated_lengths(encoder, [(1, 2, 3), (4,)])
    assert [len(each) for each in found] == [3, 1]
    # A sentence of one word: its embedding is the gated vector.
    with torch.inference_mode():
        alone = float(encoder(torch.tensor([[4]]), torch.tensor([1])).norm())
    assert found[1] == pytest.approx([alone], abs=1e-5)


def test_every_word_has_its_gate_and_keys_collect_them() -> None:
    norms = list(gate.gate_of_words(trained(GRANConfig()), [["The", "dog"], ["the", "cat", "runs"]]))
    assert [len(each) for each in norms] == [2, 3]
    found = gate.grouped([["DT", "NN"], ["DT", "NN", "VBZ"]], norms)
    assert found == {"DT": [norms[0][0], norms[1][0]], "NN": [norms[0][1], norms[1][1]], "VBZ": [norms[1][2]]}
    with pytest.raises(AnalysisError, match="has no gate"):
        next(gate.gate_of_words(trained(), [["a"]]))


def test_means_are_sorted_and_rare_keys_left_out() -> None:
    found = gate.means({"NN": [1.0, 3.0], "DT": [5.0, 7.0], "UH": [9.0]}, least=2)
    assert found == {"DT": {"mean": 6.0, "count": 2}, "NN": {"mean": 2.0, "count": 2}}
    assert list(found) == ["DT", "NN"]


def test_agreement_with_the_papers_order_is_one_in_its_order_and_minus_one_in_reverse() -> None:
    order = ["NNP", "CD", "WRB", "DT", "TO"]
    for sign in (1, -1):
        tags = {tag: {"mean": float(-sign * i)} for i, tag in enumerate(order)}
        assert gate.order_agreement(tags, order) == pytest.approx(sign)


def test_a_parse_is_read_and_labelled() -> None:
    first, second, third = read_postscript(PRINTED)
    assert second is None  # nothing is linked to the wall
    assert third is None  # words without links
    assert first is not None
    assert " ".join(first.plain()) == "the old king was buried in a small church near London ."
    assert labelled(first) == {
        **{"the": "det", "old": "amod", "king": "nsubj", "was": "auxpass", "buried": "root", "in": "prep"},
        **{"a": "det", "small": "amod", "church": "pobj", "near": "prep", "London": "pobj", ".": None},
    }


def test_a_predicate_after_be_has_the_relation_of_its_clause() -> None:
    links = (1, 3, "Dmc"), (2, 3, "A"), (3, 4, "Spx"), (0, 4, "WV"), (5, 6, "EA"), (4, 6, "Pa")
    assert labelled(parse("the old.a birds.n are.v very.e beautiful.a", *links)) == {
        **{"the": "det", "old": "amod", "birds": "nsubj", "are": "cop", "very": "advmod", "beautiful": "root"}
    }
    became = labelled(parse("he became.v-d famous.a", (0, 2, "WV"), (1, 2, "Ss"), (2, 3, "Pa")))
    assert became == {"he": "nsubj", "became": "root", "famous": "acomp"}
    there = (0, 2, "WV"), (1, 2, "SFp"), (2, 4, "Opt"), (3, 4, "Dmcn")
    assert labelled(parse("there.r are.v three students.n", *there)) == {
        **{"there": "expl", "are": "root", "three": "num", "students": "nsubj"}
    }


def test_the_first_of_coordinated_words_has_the_relation_of_all() -> None:
    links = (2, 4, "Sp"), (0, 4, "WV"), (1, 2, "SJls"), (2, 3, "SJrs"), (4, 5, "Op"), (4, 6, "MVp"), (6, 7, "Mgp")
    assert labelled(parse("cats.n and.j-n dogs.n eat.v fish.n before sleeping.v", *links)) == {
        **{"cats": "nsubj", "and": "cc", "dogs": "conj", "eat": "root", "fish": "dobj"},
        **{"before": "prep", "sleeping": "pcomp"},
    }


def test_not_is_neg_and_helping_verbs_are_aux() -> None:
    verbs = (0, 2, "WV"), (1, 2, "Ss"), (2, 4, "PPf"), (2, 3, "N"), (4, 5, "Pg*b")
    infinitive = (5, 7, "IV"), (5, 6, "TO"), (6, 7, "I*t")
    assert labelled(parse("she has.v not.e been.v trying.v to.r sing.v", *verbs, *infinitive)) == {
        **{"she": "nsubj", "has": "aux", "not": "neg", "been": "aux", "trying": "root", "to": "aux", "sing": "xcomp"}
    }
    began = (0, 2, "WV"), (1, 2, "Ss"), (2, 3, "Pg")
    assert labelled(parse("she began.v-d singing.v", *began)) == {"she": "nsubj", "began": "root", "singing": "xcomp"}


def test_a_missing_parser_and_a_lost_sentence_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies.shutil, "which", lambda name: None)
    with pytest.raises(AnalysisError, match="Debian package link-grammar"):
        parses(["a cat"])
    monkeypatch.setattr(dependencies.shutil, "which", lambda name: name)
    answer = subprocess.CompletedProcess([], 0, PRINTED, "")
    monkeypatch.setattr(dependencies.subprocess, "run", lambda *arguments, **named: answer)
    assert [each is None for each in parses(["The old king", "Calves", "blah"])] == [False, True, True]
    with pytest.raises(AnalysisError, match="answered 3 of 4 sentences"):
        parses(["The old king", "Calves", "blah", "!quit"])


def test_only_sentences_cut_alike_are_averaged_by_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dog = (["The", "old", "dog", "runs"], ["DT", "JJ", "NN", "VBZ"])
    cut_otherwise = (["A", "hotdog"], ["DT", "NN"])
    links = (0, 4, "WV"), (1, 3, "Ds"), (2, 3, "A"), (3, 4, "Ss")
    found = {"The old dog runs": parse("the old.a dog.n runs.v", *links), "A hotdog": parse("a hot dog.n")}
    monkeypatch.setattr(gate_labels, "load", lambda name, seed, runs: trained(GRANConfig()))
    monkeypatch.setattr(gate_labels, "sentences", lambda texts, tag: iter([dog] * 30 + [cut_otherwise]))
    monkeypatch.setattr(gate_labels, "shuffled_sentences", lambda: iter(()))
    monkeypatch.setattr(gate_labels, "pattern_tagger", lambda: None)
    monkeypatch.setattr(gate_labels, "parses", lambda texts: [found[text] for text in texts])
    data = gate_labels.compute(Options(("gran-1",), 1, tmp_path))
    assert (data["parsed"], data["sentences"], data["words"], data["unlabelled"]) == (30, 31, 120, 0)
    assert {label: each["count"] for label, each in data["labels"].items()} == dict.fromkeys(
        ("det", "amod", "nsubj", "root"), 30
    )
    assert set(data["of_tag"]["JJ"]) == {"amod"}
    assert set(data["of_tag"]["NN"]) == set(data["lengths_of_tag"]["NN"]) == {"nsubj"}
    assert data["lengths"].keys() == data["labels"].keys()
    assert data["lengths"] != data["labels"]
