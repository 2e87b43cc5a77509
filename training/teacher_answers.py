"""Questions with candidate answers, and what a sentence-transformer makes of each pair: ours, in no paper.

The training parts of answer selection are small (1,040 right answers in WikiQA) and their labels say little of the
wrong ones. A teacher's cosine, clipped to 0..1 and read as the probability of a right answer, grades them all; a model
is pre-trained on that and then learns the labels. No labels are used, and no development or test pair.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from training.corpora import pairwise
from training.corpora.penn import detokenise
from training.pairs import Pair
from training.recipe import TeacherAnswers
from training.teacher import TextEncoder, encode_cached


def teacher_answers(data: TeacherAnswers, teacher: TextEncoder, cache: Path) -> list[Pair]:
    """Training pairs of the corpora, `target` the teacher's cosine, 0 where it is below.

    The corpora are tokenised; the teacher reads them detokenised, as it was taught.

    Args:
        data: which corpora of answer selection, and how many pairs of each.
        teacher: encodes the texts.
        cache: folder where encodings are kept.
    """
    parts = [pairwise.read(corpus).train for corpus in data.corpora]
    # All of them are encoded, whatever the draw: another limit finds the encodings made.
    texts = sorted({text for part in parts for pair in part for text in (pair.a, pair.b)})
    encodings = encode_cached(teacher, [detokenise(text) for text in texts], cache, what="questions and answers")
    unit = encodings.astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    rng = np.random.default_rng(data.seed)
    pairs = [part[i] for part in parts for i in rng.permutation(len(part))[: data.limit].tolist()]
    row = {text: i for i, text in enumerate(texts)}
    cosine = np.einsum("nd,nd->n", unit[[row[p.a] for p in pairs]], unit[[row[p.b] for p in pairs]])
    targets = np.clip(cosine, 0.0, 1.0).tolist()
    return [replace(pair, target=target, label=None) for pair, target in zip(pairs, targets, strict=True)]
