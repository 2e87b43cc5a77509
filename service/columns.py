"""One model on columns of texts, in the caller's thread: no event loop, no queue, no cache. For whole files.

The answers are those of the service, which opens and proves the model in the same way.
"""

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from contract.errors import ContractError
from contract.manifest import Manifest, Role, ScoreTask
from contract.scoring import most_likely
from contract.subwords import has_text
from contract.tokenizer import Encoded
from service.compute.cache import VectorCache
from service.compute.pool import Pool
from service.errors import ModelError
from service.models.opener import Opener
from service.models.repository import Release, look, names_of
from service.observe.telemetry import Telemetry
from service.scoring.scorer import Scorer
from service.settings import Settings

Column = npt.NDArray[Any]


class Unfit(NamedTuple):
    """Why a value of a column gets no answer."""

    code: str
    reason: str


class Listed(NamedTuple):
    """A model that could be opened."""

    release: Release
    manifest: Manifest
    versions: tuple[int, ...]  # in its folder


def listed(settings: Settings) -> dict[str, Listed]:
    """The models that the settings serve, by id or ID@VERSION, of several versions the usual one first; opens none.

    Raises:
        ModelError: no folder, no model, or a folder whose manifest cannot be read.
    """
    contents = look(settings.models_dir, settings.models)
    for problem in contents.problems.values():
        raise ModelError(problem.reason)
    releases = dict.fromkeys(names_of(contents, settings).values())
    if not releases:
        where = ", ".join(str(root.absolute()) for root in settings.models_dir)
        raise ModelError(f"SEMBLANCE_MODELS_DIR: {where} holds no model")
    return {each.name: Listed(each, Manifest.load(each.folder), contents.versions(each.id)) for each in releases}


class Columns:
    """An opened model. All its columns are arrays [n], embeddings [n, dim]."""

    def __init__(self, settings: Settings, release: Release, fingerprint: str) -> None:
        """Open and prove a model; each of its sessions has one thread.

        Raises:
            ModelError: its fingerprint is another one, a file is not what its manifest says, or it does not answer as
                published.
        """
        alone = {"workers": "auto", "worker_threads": 1, "cache": "off"}
        cache = VectorCache(0, Telemetry())
        opener = Opener(settings.model_copy(update=alone), cache, Pool(1, 0))
        try:
            self._scorer: Scorer = opener.open(opener.read(release)).scorer
        except ContractError as error:
            raise ModelError(str(error)) from error
        self._most_chars = settings.max_text_chars
        if (found := self._scorer.manifest.fingerprint) != fingerprint:
            raise ModelError(
                f"{release.folder}: model {release.name} has the fingerprint {found} here, and {fingerprint} where it "
                "was chosen: all workers must read the same models"
            )

    def read(self, values: Sequence[object], role: Role = "text") -> list[Encoded | Unfit]:
        """Texts, and what they are for -> token ids, or why there are none."""
        prompts = self._scorer.manifest.prompts
        prompt = prompts.of(role) if prompts is not None else ""
        texts = [value for value in dict.fromkeys(values) if isinstance(value, str)]
        known: dict[object, Encoded | Unfit] = {}
        for text in texts:
            if not (has_text(text) if prompt else text.strip()):
                known[text] = _EMPTY
            elif len(text) > self._most_chars:
                reason = f"a text of {len(text)} characters, the limit is {self._most_chars}"
                known[text] = Unfit("too_large", reason)
        readable = [text for text in texts if text not in known]
        for text, sentence in zip(readable, self._scorer.tokenise([prompt + text for text in readable]), strict=True):
            known[text] = sentence if sentence.words else _EMPTY
        return [known[value] if isinstance(value, str) else _no_text(value) for value in values]

    def score(self, task: ScoreTask, a: Sequence[Encoded], b: Sequence[Encoded]) -> dict[str, Column]:
        """Columns score, raw_score, rating where the model has one, truncated, unknown."""
        a, b = self._scorer.fit(a, b)
        answer = self._scorer.similarity_at_once(a, b, task)
        rating = {} if answer.rating is None or task != "similarity" else {"rating": answer.rating}
        return {
            "score": answer.score,
            "raw_score": answer.raw_score,
            **rating,
            "truncated": _truncated(a, b),
            "unknown": np.array([max(x.unknown_ratio, y.unknown_ratio) for x, y in zip(a, b, strict=True)]),
        }

    def entailment(self, a: Sequence[Encoded], b: Sequence[Encoded]) -> dict[str, Column]:
        """Columns label, entailment, neutral, contradiction, truncated."""
        a, b = self._scorer.fit(a, b)
        rows = self._scorer.entailment_at_once(a, b)
        labels = ("entailment", "neutral", "contradiction")
        return {
            "label": np.array([most_likely(row) for row in rows], dtype=object),
            **{label: np.array([row[label] for row in rows]) for label in labels},
            "truncated": _truncated(a, b),
        }

    def embed(self, sentences: Sequence[Encoded]) -> dict[str, Column]:
        """Columns embedding float32 [n, dim], truncated; the model must be siamese."""
        embedding = self._scorer.embed_at_once([sentence.ids for sentence in sentences])
        return {"embedding": embedding, "truncated": _truncated(sentences)}

    def relevances(self, queries: Sequence[Encoded], candidates: Sequence[Sequence[Encoded]]) -> list[tuple[Any, Any]]:
        """For each query the scores and raw scores of its candidates, as the model orders them."""
        flat = list(chain.from_iterable(candidates))
        asked = list(chain.from_iterable(repeat(q, len(of)) for q, of in zip(queries, candidates, strict=True)))
        answer = self._scorer.similarity_at_once(asked, flat, self._scorer.manifest.ranking_task)
        ends = np.cumsum([len(of) for of in candidates])[:-1]
        return list(zip(np.split(answer.score, ends), np.split(answer.raw_score, ends), strict=True))


_EMPTY = Unfit("empty_text", "the text has no visible character")


def _no_text(value: object) -> Unfit:
    if value is None or (isinstance(value, float) and value != value):  # pandas' missing value
        return Unfit("missing", "there is none")
    return Unfit("not_text", f"expected text, found {type(value).__name__}")


def _truncated(*sides: Sequence[Encoded]) -> Column:
    return np.array([any(each.truncated for each in row) for row in zip(*sides, strict=True)])
