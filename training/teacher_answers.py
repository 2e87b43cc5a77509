"""Questions with candidate answers, and what a sentence-transformer makes of each pair: ours, in no paper.

The training parts of answer selection are small (1,040 right answers in WikiQA) and their labels say little of the
wrong ones. A teacher's cosine, clipped to 0..1 and read as the probability of a right answer, grades them all; a model
is pre-trained on that and then learns the labels. No labels are used, and no development or test pair.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from training.corpora import pairwise
from training.corpora.pairwise import Corpus
from training.corpora.penn import detokenise
from training.pairs import Pair
from training.teacher import TextEncoder, encode_cached


def teacher_answers(corpora: Sequence[Corpus], teacher: TextEncoder, cache: Path) -> list[Pair]:
    """Training pairs of the corpora, `target` the teacher's cosine, 0 where it is below.

    The corpora are tokenised; the teacher reads them detokenised, as it was taught.

    Args:
        corpora: answer selection corpora.
        teacher: encodes the texts.
        cache: folder where encodings are kept.
    """
    pairs = [pair for corpus in corpora for pair in pairwise.read(corpus).train]
    texts = sorted({text for pair in pairs for text in (pair.a, pair.b)})
    encodings = encode_cached(teacher, [detokenise(text) for text in texts], cache, what="questions and answers")
    unit = encodings.astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    row = {text: i for i, text in enumerate(texts)}
    cosine = np.einsum("nd,nd->n", unit[[row[p.a] for p in pairs]], unit[[row[p.b] for p in pairs]])
    targets = np.clip(cosine, 0.0, 1.0).tolist()
    return [replace(pair, target=target, label=None) for pair, target in zip(pairs, targets, strict=True)]
