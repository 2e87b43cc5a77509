"""Claims held against every sentence of a document: which sentence supports each of them best."""

from collections.abc import Sequence

from contract.scoring import most_likely
from contract.tokenizer import Encoded
from service.schemas import Answer, EntailmentResponse
from service.scoring.languages import add_hints
from service.scoring.scorer import Scorer


async def support(
    scorer: Scorer,
    texts: Sequence[str],
    sentences: Sequence[Encoded],
    claims: Sequence[Encoded],
) -> EntailmentResponse:
    """The sentence that most probably entails each claim, the first of equals, and what it says of the claim.

    Args:
        scorer: of a model with entailment.
        texts: the document's n sentences.
        sentences: the same, read.
        claims: m hypotheses.

    Raises:
        InferenceFailed: a graph raised, or gave a number that is not finite.
    """
    premises = list(sentences) * len(claims)
    hypotheses = [claim for claim in claims for _ in sentences]
    answers = await scorer.entailment(premises, hypotheses)
    results: list[Answer] = []
    for i, claim in enumerate(claims):
        found = answers[i * len(sentences) : (i + 1) * len(sentences)]
        best = max(range(len(found)), key=lambda n: found[n]["entailment"])
        results.append(
            {
                "label": most_likely(found[best]),
                "probabilities": found[best],
                "truncated": (sentences[best].truncated, claim.truncated),
                "index": best,
                "sentence": texts[best],
            }
        )
    add_hints(results, [sentences[result["index"]] for result in results], claims)
    return {"model": scorer.id, "results": results}
