"""Fit what `service/scoring/verdicts.py` makes of passages, and say how often labels are right by cross-validation.

    python -m benchmarks.verdict_weights               # some three minutes

By the likelihood of the right label, and a third as much of the passages that decide it, of the claims kept back for
development (`training/data/written`), with a prior around today's weights. The policies are left out in turn. The
weights are `_SHARP`; `_WORDS`, `_RELEVANCE`, `_PARAPHRASE`; `_STATED_WEIGHTS`; `_ENTAILED_WEIGHTS`.
"""

from collections.abc import Sequence
from typing import NamedTuple
from unittest import mock

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from core.facts import amounts_of
from semblance import Client
from service.scoring import verdicts, verification
from service.scoring.verdicts import Reading, Verdict, features_of
from training.data.readers import written

Values = npt.NDArray[np.float64]
MODEL, PRIOR, OF_EVIDENCE = "minilm-cross", 0.001, 0.3
SPREAD = np.array([5.0, 0.5, 0.1, 0.1, 0.3, 0.5, 0.3, 1.0, 0.3, 0.5])  # of the prior


class Claim(NamedTuple):
    """A claim with the passages that were found for it.

    Attributes:
        policy: its name.
        label: the right one.
        found: of each passage the cosine, shared words, relevance and paraphrase [n, 4].
        stated, entailed: what `features_of` gives [n, 4], [n, 2].
        decides: whether a deciding sentence stands in the passage [n].
    """

    policy: str
    label: str
    found: Values
    stated: Values
    entailed: Values
    decides: npt.NDArray[np.bool_]


def read(part: written.Part) -> list[Claim]:
    """The claims of a part, as `POST /claims` reads them."""
    asked: dict[str, Sequence[Reading]] = {}

    def seen(claim: str, readings: Sequence[Reading]) -> Verdict:
        asked[claim] = list(readings)
        return verdicts.verdict(claim, readings)

    found = []
    with mock.patch.object(verification, "verdict", seen), Client.local() as client:
        for policy in written.policies(part):
            client.claims(policy.document, [claim.text for claim in policy.claims], model=MODEL)
            for claim in policy.claims:
                readings = asked[claim.text]
                near = [(r.found.cosine, r.found.words, *(r.aux_scores or (0.0, 0.0))) for r in readings]
                asked_for = amounts_of(claim.text)
                features = [features_of(r, asked_for, amounts_of(r.passage.said)) for r in readings]
                stated, entailed = zip(*features, strict=True)
                decides = [any(s in r.passage.text or r.passage.text in s for s in claim.deciding) for r in readings]
                arrays = map(np.array, (near, stated, entailed, decides))
                found.append(Claim(policy.name, claim.label, *arrays))
    return found


def masses(weights: Values, claim: Claim) -> tuple[Values, Values]:
    """How much each passage entails and contradicts the claim, [n] and [n]."""
    near = claim.found @ np.array([1.0, *weights[1:4]])
    shares = np.exp(weights[0] * (near - near.max()))
    stated, entailed = claim.stated @ weights[4:8], claim.entailed @ weights[8:]
    e, c = np.exp(stated + entailed), np.exp(stated - entailed)
    return shares / shares.sum() * e / (1 + e + c), shares / shares.sum() * c / (1 + e + c)


def surprise(weights: Values, claims: Sequence[Claim]) -> float:
    """Negative log-likelihood of a claim, on average, and the prior."""
    total = 0.0
    for claim in claims:
        entailing, contradicting = masses(weights, claim)
        if claim.label == "not_stated":
            total -= np.log(max(1 - entailing.sum() - contradicting.sum(), 1e-6))
            continue
        own = entailing if claim.label == "entailed" else contradicting
        total -= np.log(max(own.sum(), 1e-6))
        if claim.decides.any():
            total -= OF_EVIDENCE * np.log(max(own[claim.decides].sum() / own.sum(), 1e-6))
    return float(total / len(claims) + PRIOR * (((weights - TODAY) / SPREAD) ** 2).sum())


def answered(weights: Values, claim: Claim) -> str:
    """The most probable label."""
    entailed, contradicted = (float(each.sum()) for each in masses(weights, claim))
    by_label = {"entailed": entailed, "contradicted": contradicted, "not_stated": 1 - entailed - contradicted}
    return max(by_label, key=by_label.__getitem__)


def fitted(claims: Sequence[Claim]) -> Values:
    """The weights of the greatest likelihood."""
    return np.asarray(minimize(surprise, TODAY, args=(claims,), method="L-BFGS-B").x)


_FIRST = (verdicts._SHARP, verdicts._WORDS, verdicts._RELEVANCE, verdicts._PARAPHRASE)
TODAY = np.array([*_FIRST, *verdicts._STATED_WEIGHTS, *verdicts._ENTAILED_WEIGHTS])


def main() -> None:
    """Print today's share of right labels, that of weights fitted to other policies, and the weights fitted to all."""
    claims = read("dev")
    print(f"{len(claims)} claims; right today: {np.mean([answered(TODAY, c) == c.label for c in claims]):.3f}")
    right = []
    for name in dict.fromkeys(claim.policy for claim in claims):
        weights = fitted([claim for claim in claims if claim.policy != name])
        right += [answered(weights, claim) == claim.label for claim in claims if claim.policy == name]
    print(f"right by weights fitted to other policies: {np.mean(right):.3f}")
    print("weights:", *fitted(claims).round(2))


if __name__ == "__main__":
    main()
