"""Questions with candidate answers, each pair rated by a sentence-transformer. Not from a paper.

The training parts of answer selection are small (1,040 right answers in WikiQA), and labels do not grade the wrong
answers. A teacher's cosine, clipped to 0..1, serves as the probability of a right answer for pre-training; the labels
are used only after that. Development and test pairs are not used.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from training.data import pairwise
from training.data.pairs import Pair
from training.data.pairwise import Corpus
from training.data.penn import detokenise
from training.teacher.encoder import TextEncoder, encode_cached


def teacher_answers(
    teacher: TextEncoder, corpora: Sequence[Corpus], limit: int | None, seed: int, cache: Path
) -> list[Pair]:
    """Training pairs of the corpora, `target` the teacher's cosine, 0 where it is below.

    The corpora are tokenised; the teacher gets detokenised text, as in its own training.

    Args:
        teacher: encodes the texts.
        corpora: of answer selection.
        limit: most pairs of each corpus, drawn at random.
        seed: of the draw.
        cache: folder where encodings are kept.
    """
    parts = [pairwise.read(corpus).train for corpus in corpora]
    # All texts are encoded, so that another limit can reuse the cached encodings.
    texts = sorted({text for part in parts for pair in part for text in (pair.a, pair.b)})
    encodings = encode_cached(teacher, [detokenise(text) for text in texts], cache, what="questions and answers")
    unit = encodings.astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    pairs = [part[i] for part in parts for i in rng.permutation(len(part))[:limit].tolist()]
    row = {text: i for i, text in enumerate(texts)}
    cosine = np.einsum("nd,nd->n", unit[[row[p.a] for p in pairs]], unit[[row[p.b] for p in pairs]])
    targets = np.clip(cosine, 0.0, 1.0).tolist()
    return [replace(pair, target=target, label=None) for pair, target in zip(pairs, targets, strict=True)]
