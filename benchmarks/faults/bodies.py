"""Requests for trials: every route, every model, texts of one word to several hundred."""

import base64
import random
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.faults.load import Ask
from benchmarks.sentences import sentences

_STRANGE = ["naïve", "Straße", "猫", "приве́т", "🦉", "e\u0301", "x" * 60, "co-operate", "3.14", "U.S.A.", "&", "don't"]
_RARE = [chr(code) for code in range(0x20000, 0x2F000, 7)]  # each is a word, and four bytes in a string
_RARE_CHARS = 490  # characters of a text that is still cached and read whole
_KNOWN = 2000  # texts of the fixed set
_FEW, _SHORT = 30, 30  # lists of more texts have short ones; words of a short text
_WORDS = sorted({word for sentence in sentences(400, seed=0) for word in sentence.rstrip(".").split()})


class Texts:
    """Random texts; half of them are from a fixed set, so that caches hit."""

    def __init__(self, rng: random.Random, longest: int) -> None:
        """Make the fixed set, of texts of at most `longest` words."""
        self._rng = rng
        self._longest = longest
        self._known = [self.new(longest) for _ in range(_KNOWN)]

    def new(self, longest: int) -> str:
        """A text of 1 to `longest` words, log-uniform.

        Where it may be long, a tenth are hundreds of rare characters: the largest texts for a cache.
        """
        rng = self._rng
        if longest >= _RARE_CHARS / 2 and rng.random() < 0.1:
            return "".join(rng.choices(_RARE, k=_RARE_CHARS))
        count = max(1, round(longest ** rng.random()))
        return " ".join(rng.choice(_STRANGE if rng.random() < 0.05 else _WORDS) for _ in range(count))

    def one(self, longest: int | None = None) -> str:
        """A new text of at most `longest` words; without a limit, half of the time one of the fixed set."""
        if longest is None and self._rng.random() < 0.5:
            return self._rng.choice(self._known)
        return self.new(longest or self._longest)

    def some(self, most: int, longest: int | None = None) -> list[str]:
        """A list of 1 to `most` texts, log-uniform; nine tenths of the long lists have short texts only."""
        count = max(1, round(most ** self._rng.random()))
        if count > _FEW and self._rng.random() > 0.1:
            longest = min(longest or self._longest, _SHORT)
        return [self.one(longest) for _ in range(count)]


def models_by_task(models: Sequence[Mapping[str, object]]) -> dict[str, list[str]]:
    """The ids of `GET /models` by task, and by family (`siamese`, `interaction`)."""
    found: dict[str, list[str]] = {}
    for model in models:
        tasks = model["tasks"]
        assert isinstance(tasks, list)
        for task in (*tasks, model["family"]):
            found.setdefault(str(task), []).append(str(model["id"]))
    return found


def every_route(models: Mapping[str, Sequence[str]], rng: random.Random, longest: int) -> Iterator[Ask]:
    """Endless requests to all routes and dialects, over all models; a few are invalid.

    Args:
        models: see `models_by_task`.
        rng: source of randomness.
        longest: most words of a text.
    """
    texts = Texts(rng, longest)
    similar, heavy = models["similarity"], models.get("interaction", ())

    def most(model: str, light: int, few: int = 12) -> int:
        return few if model in heavy else light

    def similarity() -> Ask:
        model = rng.choice(similar)
        pairs = [{"a": a, "b": texts.one()} for a in texts.some(most(model, 256))]
        return Ask.post("/similarity", {"pairs": pairs, "model": model})

    def rank() -> Ask:
        model = rng.choice(similar)
        many = texts.some(most(model, 1000, 20))
        body: dict[str, object] = {"query": texts.one(), "candidates": many, "model": model}
        if heavy and rng.random() < 0.3:
            body |= {"rerank_model": rng.choice(heavy), "rerank_top": rng.randint(1, 10)}
        return Ask.post("/rank", body)

    def entailment() -> Ask:
        model = rng.choice(models["entailment"])
        pairs = [{"premise": a, "hypothesis": texts.one()} for a in texts.some(most(model, 128))]
        return Ask.post("/entailment", {"pairs": pairs, "model": model})

    def embed() -> Ask:
        model = rng.choice(models["siamese"])
        return Ask.post("/embed", {"sentences": texts.some(most(model, 256)), "model": model})

    def explain() -> Ask:
        model = rng.choice(similar)
        longest_here = 12 if model in heavy else 20  # an explanation scores the pair once for each token
        return Ask.post("/explain", {"a": texts.one(longest_here), "b": texts.one(longest_here), "model": model})

    def others() -> Ask:
        """A request of another dialect."""
        many, query = texts.some(80), texts.one()
        asked: tuple[tuple[str, dict[str, object]], ...] = (
            ("/tei/similarity", {"inputs": {"source_sentence": query, "sentences": many}}),
            ("/tei/embed", {"inputs": many}),
            ("/tei/predict", {"inputs": [[text, query] for text in many]}),
            ("/tei/rerank", {"query": query, "texts": many, "return_text": True}),
            ("/tei", {"inputs": many}),
            ("/v1/rerank", {"query": query, "documents": many, "return_documents": True}),
            ("/v2/rerank", {"query": query, "documents": many, "top_n": 3}),
            ("/openai/v1/score", {"text_1": query, "text_2": many}),
            ("/v1/embeddings", {"input": many, "encoding_format": rng.choice(["float", "base64"])}),
        )
        return Ask.post(*rng.choice(asked))

    def looks() -> Ask:
        pages = ("/models", "/v1/models", "/tei/info", "/metrics", "/health/ready", "/health/live", "/openapi.json")
        return Ask(rng.choice(pages))

    def refused() -> Ask:
        model = rng.choice(similar)
        return rng.choice(
            [
                Ask.post("/similarity", {"pairs": []}, 422),
                Ask.post("/similarity", {"pairs": [{"a": texts.one(), "b": " "}], "model": model}, 422),
                Ask.post("/rank", {"query": texts.one(), "candidates": texts.some(20), "model": texts.one(3)}, 404),
                Ask("/embed", base64.b64encode(rng.randbytes(500)), 400),
                Ask("/nowhere", None, 404),
            ]
        )

    makers = (similarity, rank, entailment, embed, explain, others, looks, refused)
    while True:
        yield rng.choices(makers, (24, 18, 12, 12, 6, 24, 2, 2))[0]()
