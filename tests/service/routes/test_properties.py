"""What holds of every answer of published models, whatever the texts.

By itself for one of each kind; with `TEST_EFFORT` (see `tests/harness/effort.py`) for all of them, and longer.
"""

import json
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.manifest import Manifest
from core.ranking import both_stages
from core.scoring import round_significant
from core.subwords import AnyTokenizer, load_tokenizer
from core.text import split_words
from core.tokenizer import Encoded
from tests.harness import fakes
from tests.harness.dialects import REQUESTS, DialectRequest, put
from tests.harness.effort import EFFORT, looking
from tests.harness.service import Ask, ServeAside

# What a failure shows of long texts is cut, which is no failure itself.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
PUBLISHED = Path(__file__).parents[3] / "models"
# Averaged words by their cosine and with heads, an interaction model, a transformer.
KINDS = ("avg-paraphrase", "avg-sick", "pwim-sick", "minilm-small")
CHOSEN = KINDS if EFFORT == 1 else tuple(sorted(path.parent.name for path in PUBLISHED.glob("*/manifest.json")))


def _abilities(manifest: Manifest) -> set[str]:
    tasks = {"similarity": manifest.similarity, "entailment": manifest.entailment, "embedding": manifest.dim}
    symmetric = manifest.similarity is not None and manifest.similarity.symmetric
    return {name for name, task in tasks.items() if task is not None} | ({"symmetry"} if symmetric else set())


def able(*tasks: str) -> list[Any]:
    """The models that can do all of these, as parameters: who cannot is not collected."""
    return [
        pytest.param(name, marks=pytest.mark.artifacts, id=name)
        for name in CHOSEN
        if _abilities(Manifest.load(PUBLISHED / name)) >= set(tasks)
    ]


SAME = 3e-6  # how far two answers to the same question may lie apart: other texts of a batch move the last two digits
SAME_RAW = 2e-5  # likewise two raw scores of /rank: a relevance may count a cosine some twenty times
MAX_CHARS = 4000
MAX_EXPLAINED = 20
# Beyond what chance makes of Unicode: what normalisation, word boundaries and hash buckets have to bear.
ODD = [
    "\0", "\x1b[31m", "\x7f", "\u0085", "\ufffe", "\U0010ffff",  # controls, and no characters at all
    " ", "\t", "\r\n", "\u00a0", "\u2003", "\u2028", "\u3000", "\u200b", "\u2060", "\ufeff",  # white, wide and no space
    "e\u0301", "a" + "\u0300" * 300, "\u0301", "\u3099", "\u0915\u094d\u0937", "\ufdfa",  # marks, and what unfolds
    "\u05e9\u05dc\u05d5\u05dd", "\u202e man \u202c", "\u0645\u0631\u062d\u0628\u0627", "\u2067dog\u2069",  # leftward
    "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "1\ufe0f\u20e3", "\U000e0041",
    "\u732b", "\uac00\u1100\u1161", "\ufb03", "\u00df", "\u0130", "\u03a3\u03c2", "\U0001d4d0", "\u2460", "\uff21",
    "x" * 65, "man" * 200, "1,000.5" * 40, "'" * 30, "n't", "do n't", "\\u0000", '"}],', "%s {0} ${a}", "<bucket 1>",
]  # fmt: skip
WORDS = [*fakes.WORDS, "running", "moss", "xylophone", "7", "isn't", "\u732b", "Man", "n\u00e4ive", "!"]


class Model(NamedTuple):
    """One model and how to ask it: with no cache, or with one that fills as the examples pass."""

    manifest: Manifest
    tokenizer: AnyTokenizer
    others: list["Model"]  # of the same folder, with a similarity, itself among them
    ask: Ask
    ask_cached: Ask

    @property
    def cached(self) -> "Model":
        return self._replace(ask=self.ask_cached)

    @property
    def limit(self) -> int:
        return self.manifest.limits.max_tokens

    def read(self, text: str) -> Encoded:
        return self.tokenizer.encode(text, self.limit)

    def similarity(self, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self.answer("/similarity", pairs=[{"a": a, "b": b} for a, b in pairs])[
            "results"
        ]
        return results

    def raw(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [result["raw_score"] for result in self.similarity(pairs)]

    def raw_by_text(self, query: str, texts: Sequence[str]) -> dict[str, float]:
        """What orders the texts: relevance where the model has it, each asked by itself."""
        if self.manifest.relevance is None:
            return dict(zip(texts, self.raw([(query, text) for text in texts]), strict=True))
        return {text: self.rank(query, [text])["results"][0]["raw_score"] for text in texts}

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        asked = [{"premise": a, "hypothesis": b} for a, b in pairs]
        results: list[dict[str, Any]] = self.answer("/entailment", pairs=asked)["results"]
        return results

    def rank(self, query: str, candidates: Sequence[str], **more: object) -> dict[str, Any]:
        return self.answer("/rank", query=query, candidates=candidates, **more)

    def answer(self, path: str, **body: object) -> dict[str, Any]:
        response = self.ask(path, {"model": self.manifest.id} | body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = json.loads(response.text, parse_constant=_not_json)
        return answer


def _not_json(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


# Nothing is refused because the machine is busy.
PATIENT = {"request_timeout": 100, "max_queue_seconds": 100}


@pytest.fixture(scope="module")
def published(serve_aside: ServeAside) -> Iterator[dict[str, Model]]:
    """The chosen models by their names."""
    settings = PATIENT | {"models_dir": PUBLISHED, "models": CHOSEN}
    with (
        pytest.MonkeyPatch.context() as patch,
        serve_aside(cache_bytes=500_000, **settings) as cached,
        serve_aside(cache_bytes=0, **settings) as uncached,
    ):
        patch.setattr("service.scoring.tokenising.MAX_TEXT_CHARS", MAX_CHARS)
        patch.setattr("service.routes.native.MAX_EXPLAINED_TOKENS", MAX_EXPLAINED)
        found: dict[str, Model] = {}
        scoring: list[Model] = []
        for name in CHOSEN:
            manifest = Manifest.load(PUBLISHED / name)
            tokenizer = load_tokenizer(manifest.path_of(PUBLISHED / name, manifest.tokenizer))
            found[name] = Model(manifest, tokenizer, scoring, uncached, cached)
        scoring += [model for model in found.values() if model.manifest.similarity is not None]
        yield found


def each(*tasks: str) -> Any:
    """A fixture: in turn each model that can do all of these."""

    @pytest.fixture(scope="module", params=able(*tasks))
    def chosen(request: pytest.FixtureRequest, published: dict[str, Model]) -> Model:
        return published[request.param]

    return chosen


model, scoring, symmetric, labelling = each(), each("similarity"), each("symmetry"), each("entailment")


def whole(text: str) -> bool:
    """Whether there is something to read."""
    return bool(split_words(text))


characters = st.characters(exclude_categories=["Cs"])
anything = st.one_of(
    st.text(characters, max_size=40),
    st.lists(st.sampled_from([*ODD, *WORDS]), max_size=8).map("".join),
    st.sampled_from(ODD),
    st.builds(str.__mul__, characters, st.integers(0, MAX_CHARS + 1)),
)
sentences = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=16).map(" ".join),
    st.lists(st.sampled_from([*ODD, *WORDS]), min_size=1, max_size=8).map(" ".join).filter(whole),
    st.text(characters, min_size=1, max_size=40).filter(whole),
)
pairs = st.tuples(sentences, sentences)
# More than a graph takes in one run, now and then.
companies = st.one_of([st.lists(pairs, max_size=4)] * 5 + [st.lists(pairs, min_size=33, max_size=34)])
# Few words, so that candidates are alike, and often the same.
candidates = st.lists(
    st.lists(st.sampled_from(WORDS[:5]), min_size=1, max_size=3).map(" ".join) | sentences, min_size=1, max_size=10
)


@looking(8)
@given(asked=st.lists(pairs, min_size=1, max_size=5))
def test_scores_are_in_their_ranges(scoring: Model, asked: list[tuple[str, str]]) -> None:
    task = scoring.manifest.similarity
    assert task is not None
    low, high = task.raw_range
    for result in scoring.similarity(asked):
        assert 0 <= result["score"] <= 1
        assert low <= result["raw_score"] <= high
        assert all(0 <= share <= 1 for share in result["unknown"])
        if task.label_scale is not None:
            assert result["rating_scale"] == list(task.label_scale)
            assert task.label_scale[0] <= result["rating"] <= task.label_scale[1]


@looking(8)
@given(asked=st.lists(pairs, min_size=1, max_size=5))
def test_the_order_of_a_pair_moves_no_score_that_is_symmetric(symmetric: Model, asked: list[tuple[str, str]]) -> None:
    turned = symmetric.raw([(b, a) for a, b in asked])
    assert turned == pytest.approx(symmetric.raw(asked), abs=SAME)


@looking(6)
@given(pair=pairs, others=companies, data=st.data())
def test_an_answer_is_the_same_in_any_company(
    model: Model, pair: tuple[str, str], others: list[tuple[str, str]], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(others)))
    many = [*others[:place], pair, *others[place:], pair]
    if model.manifest.similarity is not None:
        (alone,), together = model.similarity([pair]), model.similarity(many)
        for result in (together[place], together[-1]):
            assert result["raw_score"] == pytest.approx(alone["raw_score"], abs=SAME)
            alike(result, alone)
        (ranked,) = model.rank(pair[0], [pair[1]])["results"]
        scores = {r["index"]: r["score"] for r in model.rank(pair[0], [b for _, b in many])["results"]}
        assert [scores[place], scores[len(others) + 1]] == pytest.approx([ranked["score"]] * 2, abs=SAME)
    if model.manifest.entailment is not None:
        (alone,), together = model.entailment([pair]), model.entailment(many)
        for result in (together[place], together[-1]):
            assert result["probabilities"] == pytest.approx(alone["probabilities"], abs=SAME)
    if model.manifest.dim is not None:
        rows = model.answer("/embed", sentences=[text for each in many for text in each])["embeddings"]
        for found in (rows[2 * place : 2 * place + 2], rows[-2:]):
            np.testing.assert_allclose(found, model.answer("/embed", sentences=pair)["embeddings"], rtol=0, atol=SAME)


@looking(6)
@given(asked=st.lists(pairs, min_size=1, max_size=5))
def test_probabilities_sum_to_one(labelling: Model, asked: list[tuple[str, str]]) -> None:
    task = labelling.manifest.entailment
    assert task is not None
    for result in labelling.entailment(asked):
        found = result["probabilities"]
        assert set(found) == set(task.labels)
        assert all(0 <= value <= 1 for value in found.values())
        assert sum(found.values()) == pytest.approx(1, abs=SAME)
        assert found[result["label"]] == max(found.values())


@looking(6)
@given(query=sentences, texts=candidates, data=st.data())
def test_candidates_are_ordered_by_their_scores_wherever_they_stand(
    scoring: Model, query: str, texts: list[str], data: st.DataObject
) -> None:
    raw = scoring.raw_by_text(query, texts)
    given_first = scoring.rank(query, texts)["results"]
    moved = data.draw(st.permutations(texts))
    for order in (texts, moved):
        results = scoring.rank(query, order)["results"]
        assert sorted(result["index"] for result in results) == list(range(len(order)))
        in_order([(order[result["index"]], result["index"]) for result in results], raw)
    score_of = {texts[result["index"]]: result["score"] for result in given_first}
    for result in results:
        assert result["score"] == pytest.approx(score_of[moved[result["index"]]], abs=SAME)


@looking(6)
@given(query=sentences, texts=candidates, top=st.integers(1, 12), data=st.data())
def test_the_best_are_ordered_again_wherever_they_stand(
    scoring: Model, query: str, texts: list[str], top: int, data: st.DataObject
) -> None:
    second = data.draw(st.sampled_from(scoring.others))
    coarse, fine = scoring.raw_by_text(query, texts), second.raw_by_text(query, texts)
    for order in (texts, data.draw(st.permutations(texts))):
        answer = scoring.rank(query, order, rerank_model=second.manifest.id, rerank_top=top)
        assert (answer["model"], answer["rerank_model"]) == (scoring.manifest.id, second.manifest.id)
        results = answer["results"]
        assert sorted(result["index"] for result in results) == list(range(len(order)))
        best = min(top, len(order))
        assert [result["stage"] for result in results] == [2] * best + [1] * (len(order) - best)
        places = [(order[result["index"]], result["index"]) for result in results]
        read = [text for text, _ in places[:best]]
        first, again = ([raw[text] for text in read] for raw in (coarse, fine))
        joined = dict(zip(read, both_stages(first, again).tolist(), strict=True))
        spreads = [float(np.std(raw)) for raw in (first, again)]
        in_order(places[:best], joined, SAME_RAW * sum(1 / spread for spread in spreads if spread))
        in_order(places[best:], coarse)
        if rest := places[best:]:  # whom the second model saw is the first one's choice
            in_order([min(places[:best], key=lambda place: (coarse[place[0]], -place[1])), rest[0]], coarse)


def in_order(places: list[tuple[str, int]], raw: dict[str, float], same: float = SAME_RAW) -> None:
    """Texts with their index in the request: the best first, and of equal texts the earlier first."""
    for (better, before), (worse, after) in pairwise(places):
        assert raw[better] >= raw[worse] - same
        assert better != worse or before < after


@looking(6)
@given(query=sentences, texts=candidates, top_k=st.integers(1, 12), data=st.data())
def test_the_best_few_are_the_beginning_of_them_all(
    scoring: Model, query: str, texts: list[str], top_k: int, data: st.DataObject
) -> None:
    second = data.draw(st.sampled_from(scoring.others))
    two_stages = {"rerank_model": second.manifest.id, "rerank_top": data.draw(st.integers(1, 12))}
    for stages in ({}, two_stages):
        everything = scoring.rank(query, texts, **stages)["results"]
        best = scoring.rank(query, texts, top_k=top_k, **stages)["results"]
        assert len(best) == min(top_k, len(texts))
        for one, other in zip(best, everything, strict=False):
            alike(one, other)


@looking(5)
@given(asked=st.lists(pairs, min_size=1, max_size=4))
def test_a_cache_moves_no_answer(model: Model, asked: list[tuple[str, str]]) -> None:

    def answers(model: Model) -> Iterator[object]:
        if model.manifest.similarity is not None:
            yield model.similarity(asked)
            ranked = model.rank(asked[0][0], [b for _, b in asked])["results"]
            yield sorted(ranked, key=lambda result: result["index"])  # equals but for rounding may change places
        if model.manifest.entailment is not None:
            yield [result["probabilities"] for result in model.entailment(asked)]
        if model.manifest.dim is not None:
            yield model.answer("/embed", sentences=[text for pair in asked for text in pair])

    cold = list(answers(model))
    for _ in range(2):  # the second time all of it is known
        alike(list(answers(model.cached)), cold)


def alike(found: Any, expected: Any, tolerance: float = SAME) -> None:
    """The same, but for numbers that may differ a little."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            alike(found[key], value, SAME_RAW if key in ("raw_score", "score") else SAME)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            alike(one, other)
    else:
        near = pytest.approx(expected, abs=tolerance, rel=2 * SAME) if isinstance(expected, float) else expected
        assert found == near  # the seventh digit of a rating is 1e-6


@looking(5)
@given(data=st.data())
def test_what_is_cut_is_said_and_nothing_else(model: Model, data: st.DataObject) -> None:
    """Of words that are one token each the count is plain, without asking the tokenizer."""
    counts = st.integers(1, 3) | st.integers(model.limit - 2, model.limit + 2)
    asked = data.draw(st.lists(counts, min_size=4, max_size=4))
    texts = [" ".join(islice(cycle(["man", "dog", "the"]), count)) for count in asked]
    cut = [count > model.limit for count in asked]
    a, b, c, d = texts
    if model.manifest.similarity is not None:
        results = model.similarity([(a, b), (c, d)])
        assert [result["truncated"] for result in results] == [cut[:2], cut[2:]]
        assert [result["tokens"] for result in results] == [
            [min(count, model.limit) for count in side] for side in (asked[:2], asked[2:])
        ]
        truncated = model.rank(a, [b, c, d])["truncated"]
        assert truncated == {"query": cut[0], "candidates": [i for i in range(3) if cut[i + 1]]}
    if model.manifest.entailment is not None:
        labelled = model.entailment([(a, b), (c, d)])
        assert [result["truncated"] for result in labelled] == [cut[:2], cut[2:]]
    if model.manifest.dim is not None:
        assert model.answer("/embed", sentences=texts)["truncated"] == cut


@looking(8)
@given(pair=pairs)
def test_any_text_is_counted_as_the_tokenizer_reads_it(scoring: Model, pair: tuple[str, str]) -> None:
    (result,) = scoring.similarity([pair])
    read = [scoring.tokenizer.encode(text, max_tokens=10**9) for text in pair]
    assert result["tokens"] == [min(len(sentence.ids), scoring.limit) for sentence in read]
    assert result["truncated"] == [len(sentence.ids) > scoring.limit for sentence in read]
    assert result["unknown"] == [round_significant(sentence.unknown / sentence.words) for sentence in read]


@looking(6)
@given(pair=pairs)
def test_an_explanation_is_of_the_score_and_shares_sum_to_it(scoring: Model, pair: tuple[str, str]) -> None:
    a, b = (scoring.read(text) for text in pair)
    if max(len(a.ids), len(b.ids)) > MAX_EXPLAINED:
        return  # refused: see the test of any text
    answer = scoring.answer("/explain", a=pair[0], b=pair[1])
    (scored,) = scoring.similarity([pair])
    for field in {"score", "raw_score", "rating"} & set(scored):
        assert answer[field] == pytest.approx(scored[field], abs=SAME)
    assert [answer["a"]["truncated"], answer["b"]["truncated"]] == scored["truncated"]
    sizes = [len(answer["a"]["tokens"]), len(answer["b"]["tokens"])]
    assert sizes == [len(a.ids), len(b.ids)]
    for matrix in answer["matrices"]:
        assert np.shape(matrix["values"]) == (sizes[0], sizes[1])
    vectors = {vector["name"]: vector for vector in answer["vectors"]}
    for vector in vectors.values():
        assert [len(vector["a"]), len(vector["b"])] == sizes
    task = scoring.manifest.similarity
    assert task is not None
    a_mean = scoring.manifest.additive is True or scoring.manifest.token_embeddings is not None
    assert ("contributions" in vectors) == (a_mean and task.comparison == "cosine")
    if "contributions" in vectors:
        shares = vectors["contributions"]
        (of_pairs,) = (matrix["values"] for matrix in answer["matrices"] if matrix["name"] == "contributions")
        for total in (sum(shares["a"]), sum(shares["b"]), np.sum(of_pairs)):
            assert total == pytest.approx(answer["raw_score"], abs=SAME)


# The task that a model must have, a body of four texts, and where in it they stand.
PLACES: dict[str, tuple[str, Any, list[str]]] = {
    "/similarity": (
        "similarity",
        lambda t: {"pairs": [{"a": t[0], "b": t[1]}, {"a": t[2], "b": t[3]}]},
        ["pairs.0.a", "pairs.0.b", "pairs.1.a", "pairs.1.b"],
    ),
    "/rank": (
        "similarity",
        lambda t: {"query": t[0], "candidates": t[1:]},
        ["query", "candidates.0", "candidates.1", "candidates.2"],
    ),
    "/entailment": (
        "entailment",
        lambda t: {"pairs": [{"premise": t[0], "hypothesis": t[1]}, {"premise": t[2], "hypothesis": t[3]}]},
        ["pairs.0.premise", "pairs.0.hypothesis", "pairs.1.premise", "pairs.1.hypothesis"],
    ),
    "/embed": ("embedding", lambda t: {"sentences": t}, [f"sentences.{i}" for i in range(4)]),
    "/explain": ("similarity", lambda t: {"a": t[0], "b": t[1]}, ["a", "b"]),
}


@looking(12)
@given(texts=st.lists(anything, min_size=4, max_size=4))
# Of the last two pwim-sick gives a class less probability than a float32 can hold.
@example(texts=["0", "0", "00Y|11{1W{000X|0|", "\U0005e871" * 23])
def test_any_text_is_answered_or_its_field_is_named(model: Model, texts: list[str]) -> None:
    for path, (task, body_of, fields) in PLACES.items():
        if task not in _abilities(model.manifest):
            continue
        read = dict(zip(fields, texts, strict=False))
        # What is looked at first: the length of each text, then whether there is something to read in it.
        wrong = [(413, "too_large", field) for field, text in read.items() if len(text) > MAX_CHARS]
        wrong += [(422, "empty_text", field) for field, text in read.items() if not model.read(text).words]
        if path == "/explain":
            wrong += [
                (413, "too_large", field) for field, text in read.items() if len(model.read(text).ids) > MAX_EXPLAINED
            ]
        response = model.ask_cached(path, {"model": model.manifest.id} | body_of(texts))
        if wrong:
            error = response.json()["error"]
            assert (response.status_code, error["code"], error["field"]) == wrong[0]
        else:
            assert response.status_code == 200, (path, response.text)


def _filled(asked: DialectRequest, texts: list[str]) -> object:
    """A good request with other texts."""
    return reduce(lambda body, one: put(body, *one), zip(asked.texts, texts, strict=False), asked.body)


@pytest.fixture(scope="module")
def of_fakes(serve_aside: ServeAside) -> Iterator[Ask]:
    with pytest.MonkeyPatch.context() as patch, serve_aside(**PATIENT) as ask:
        patch.setattr("service.scoring.tokenising.MAX_TEXT_CHARS", MAX_CHARS)
        yield ask


@looking(15)
@given(texts=st.lists(anything, min_size=4, max_size=4))
def test_any_text_of_another_services_client_too(of_fakes: Ask, texts: list[str]) -> None:
    for asked in REQUESTS.values():
        if asked.own in ("", "/classify"):
            continue
        read = dict(zip(asked.texts, texts, strict=False))
        wrong = [field for field, text in read.items() if len(text) > MAX_CHARS or not whole(text)]
        response = of_fakes(asked.path, _filled(asked, texts))
        if wrong:
            assert 400 <= response.status_code < 500
            assert any(f"{field}: " in response.text for field in wrong), (asked.path, response.text)
        else:
            assert response.status_code == 200, (asked.path, response.text)
