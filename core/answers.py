"""The service's answers to texts, as its client reads them; the service sends dicts with the same fields.

A field with a default may be absent from an answer. One that is marked ALWAYS is absent only from those of an older
service. `Annotated[X, ...] | None`: the field may be absent, and the client then shows None. `Annotated[X | None, ...]`
is of fields that the service sends as null.
The OpenAPI document is made of these types: their order, docstrings, descriptions and bounds (service/schemas.py).
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

Scale = Literal["similarity", "paraphrase_probability", "relevance_probability"]
EntailmentLabel = Literal["entailment", "neutral", "contradiction", "not_entailment"]
ClaimLabel = Literal["entailed", "contradicted", "not_stated"]
Range = tuple[float, float]
ALWAYS = {"always": True}
SCALE = (
    "what a score says: `similarity` how alike two texts are, 0 to 1, as people rate it; `paraphrase_probability` how "
    "probable it is that they say the same; `relevance_probability` that a candidate is an answer to the query, if it "
    "were one in two cases: over .5 speaks for it, however many candidates there are"
)


def says(description: str) -> Any:
    """What the documentation says of a field."""
    return Field(description=description)


def share(description: str | None = None) -> Any:
    """A number from 0 to 1; only in the documentation, for a client does not check the service."""
    return Field(description=description, json_schema_extra={"minimum": 0, "maximum": 1})


Ratio = Annotated[float, share()]
_Score = Annotated[float, share("calibrated similarity")]
_RawScore = Annotated[float, says("as the model gives it")]
_Rating = Annotated[float, says("on the rating scale of the corpus, if the model has one")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityResult:
    """The answer for one pair."""

    score: _Score
    raw_score: _RawScore
    rating: _Rating | None = None
    rating_scale: Range | None = None
    tokens: Annotated[tuple[int, int], says("tokens read of a and of b")]
    truncated: Annotated[tuple[bool, bool], says("whether a and b were cut at the model's limit")]
    unknown: Annotated[
        tuple[Ratio, Ratio],
        says(
            "share of the words of a and of b outside the model's vocabulary; "
            "of a long text that is truncated, of the words that were read"
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarities:
    """One result for each pair, in the order of the request."""

    model: str
    scale: Annotated[Scale, says(SCALE)] | None = field(default=None, metadata=ALWAYS)
    results: list[SimilarityResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankResult:
    """The score of one candidate."""

    index: Annotated[int, says("its position in the request")]
    score: Annotated[float, share("calibrated, on the scale of the model that scored it")]
    raw_score: Annotated[float, says("as the model that scored it gives it; the order is by this")]
    stage: (
        Annotated[Literal[1, 2], says("which of the two stages placed and scored it; absent in one stage")] | None
    ) = None
    id: Annotated[str, says("of the entry; absent where it has none")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTruncated:
    """Texts that were cut at the model's token limit."""

    query: bool
    candidates: Annotated[list[int], says("positions in the request")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The candidates by their raw score, best first; of equal ones the earlier first.

    In two stages those that the second model ordered come first, then the others in the order of the first model.
    """

    model: str
    scale: Annotated[Scale, says(f"of `model`: {SCALE}")] | None = field(default=None, metadata=ALWAYS)
    results: Annotated[list[RankResult], says("empty where `answered` is false")]
    answered: Annotated[
        bool,
        says(
            "false: the first is below `min_score` or `threshold`. Then `results` is empty, but of candidates without "
            "`min_score` and `min_confidence`"
        ),
    ] = field(default=True, metadata=ALWAYS)
    confidence: Annotated[
        Ratio | None,
        says(
            "the probability that the first candidate is right, and so that one of them is; null where none was fitted "
            "for these models, or there is one candidate alone (docs/faq.md)"
        ),
    ] = field(default=None, metadata=ALWAYS)
    threshold: Annotated[
        Ratio | None,
        says(
            "the confidence from which on there is an answer: `min_confidence`, else that of the fit; null where there "
            "is no confidence, or `min_score` alone decides"
        ),
    ] = field(default=None, metadata=ALWAYS)
    suggestions: Annotated[list[RankResult], says("the best three, where `results` is empty; absent else")] | None = (
        None
    )
    truncated: RankTruncated
    rerank_model: Annotated[str, says("model of the second stage; absent in one stage")] | None = None
    rerank_scale: Annotated[Scale, says("likewise, of `rerank_model`")] | None = None
    rerank_truncated: (
        Annotated[RankTruncated, says("what was cut at that model's token limit, of what it read")] | None
    ) = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probabilities:
    """The probability of each label of the model; they sum to 1."""

    entailment: Ratio
    neutral: Ratio | None = None
    contradiction: Ratio | None = None
    not_entailment: Annotated[float, share("of a model of two labels: neutral or contradiction")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntailmentResult:
    """The answer for one pair."""

    label: Annotated[EntailmentLabel, says("the most probable one")]
    probabilities: Probabilities
    truncated: Annotated[tuple[bool, bool], says("whether premise and hypothesis were cut")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entailments:
    """One result for each pair, in the order of the request."""

    model: str
    results: list[EntailmentResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPassage:
    """A sentence of a document, or two neighbours, and what it says of a claim."""

    document: Annotated[int, says("its position in the request")]
    start: Annotated[int, says("of its first character in the document, from 0, in code points")]
    end: Annotated[int, says("after its last one")]
    text: Annotated[str, says("without markup; of a table row its cells")]
    headings: Annotated[list[str], says("that it stands under, outermost first; the line above a list")]
    label: Annotated[ClaimLabel, says("what it says of the claim, most probably")]
    probability: Annotated[float, share("of that")]
    differences: Annotated[
        list[str], says("numbers, dates and amounts of the claim that are others here: `3 is not 5`")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimProbabilities:
    """Of each label; they sum to 1."""

    entailed: Ratio
    contradicted: Ratio
    not_stated: Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """The answer for one claim."""

    label: Annotated[ClaimLabel, says("what the documents say of it")]
    confidence: Annotated[float, share("how probable that label is")]
    probabilities: ClaimProbabilities
    evidence: Annotated[ClaimPassage, says("that says so; absent where nothing is stated")] | None = None
    runner_up: Annotated[ClaimPassage, says("what speaks most for another label that states something")]
    truncated: Annotated[bool, says("whether the claim was cut at the model's limit")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """One result for each claim, in the order of the request."""

    model: str
    encoder: Annotated[str, says("the model that found the passages")]
    results: list[ClaimResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherText:
    """The nearest text that differs in a fact."""

    index: Annotated[int, says("its position in the request")]
    why: Annotated[str, says("how the two differ: `4711 is not 4712`")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateResult:
    """The answer for one text."""

    cluster: Annotated[int, says("position of the first text that says the same")]
    cluster_size: int
    truncated: Annotated[bool, says("whether the text was cut at the limit of the model that embeds it")]
    kept_apart: OtherText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearPair:
    """Two texts that are near, and the verdict on them."""

    index_1: Annotated[int, says("position of the earlier text in the request")]
    index_2: int
    cosine: float
    score: Annotated[float, share("that both say the same; absent where no model read them")] | None = None
    joined: Annotated[bool, says("whether they are in one cluster")]
    why: Annotated[str, says("what spoke for and against it")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicates:
    """One result for each text, in the order of the request."""

    model: str
    pair_model: Annotated[str, says("the model that read near pairs; absent where cosines decided")] | None = None
    results: list[DuplicateResult]
    review: Annotated[list[NearPair], says("pairs in doubt, the most doubtful first")]
    apart: Annotated[list[NearPair], says("other near pairs that were not joined, the nearest first")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyResult:
    """The answer for one text."""

    label: Annotated[str, says("the most probable one")]
    probabilities: Annotated[
        dict[str, Ratio], says("of each label; they sum to 1, except where each was judged by itself")
    ]
    truncated: Annotated[bool, says("whether the text, or a label in its template, was cut")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """One result for each text, in the order of the request."""

    model: str
    results: list[ClassifyResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedResponse:
    """One embedding for each sentence, in the order of the request."""

    model: str
    dim: int
    embeddings: list[list[float]]
    truncated: Annotated[list[bool], says("whether each sentence was cut at the model's limit")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensOfSentence:
    """A sentence as the model read it."""

    tokens: Annotated[
        list[str], says("words; pieces of words, ## where one continues a word; <bucket n> for what no piece covers")
    ]
    truncated: Annotated[bool, says("whether it was cut at the model's limit")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What an explanation shows, and the range of its numbers."""

    name: str
    description: str
    range: Annotated[Range, says("the lowest and highest value there can be")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixOfTokens(Explained):
    """A number for each token of a with each token of b."""

    values: Annotated[list[list[float]], says("rows are the tokens of a, columns those of b")]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsOfTokens(Explained):
    """A number for each token of a, and one for each of b."""

    a: list[float | None]
    b: list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation of a score; docs/explaining.md says what each model shows."""

    model: str
    score: _Score
    raw_score: _RawScore
    rating: _Rating | None = None
    rating_scale: Range | None = None
    a: TokensOfSentence
    b: TokensOfSentence
    matrices: list[MatrixOfTokens]
    vectors: list[VectorsOfTokens]
