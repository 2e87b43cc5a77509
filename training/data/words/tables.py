"""A word table: a tokenizer and one vector for each of its ids. Every model starts from one.

Rows of pieces and buckets, the fallback for words outside the vocabulary, are computed from the word vectors, for any
source of vectors (GloVe, PARAGRAM, distilled).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse
from tokenizers import Tokenizer as TrainableTokenizer
from tokenizers.models import WordPiece
from tokenizers.trainers import WordPieceTrainer

from core.tokenizer import CONTINUATION, Tokenizer

Matrix = npt.NDArray[np.float32]

TOKENIZER_NAME = "tokenizer.json"
ROWS_NAME = "rows.npy"
_FREQUENT = 5000  # pieces are fitted on words beyond this rank: a word outside the vocabulary is a rare word
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True)
class WordTable:
    """Tokenizer and rows float32 [len(tokenizer), dim]; row 0 (padding) is zero."""

    tokenizer: Tokenizer
    rows: Matrix

    def save(self, folder: Path) -> None:
        """Write the folder `tokenizer.json` + `rows.npy`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(folder / TOKENIZER_NAME)
        np.save(folder / ROWS_NAME, self.rows, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path) -> "WordTable":
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: no such table; names the command that makes one.
            ValueError: rows and tokenizer differ in size.
        """
        if not (folder / ROWS_NAME).is_file():
            raise FileNotFoundError(f"{folder}: no word table here; make one with `python -m training distill`")
        table = cls(Tokenizer.load(folder / TOKENIZER_NAME), np.load(folder / ROWS_NAME, allow_pickle=False))
        if len(table.tokenizer) != len(table.rows):
            raise ValueError(f"{folder}: {len(table.tokenizer)} token ids but {len(table.rows)} rows")
        return table


def learn_pieces(words: Sequence[str], size: int) -> list[str]:
    """About `size` WordPiece units of a list of words, each word counted once (so: morphemes, not whole words)."""
    if size <= 0:
        return []
    trainable = TrainableTokenizer(WordPiece(unk_token="<unk>"))
    trainer = WordPieceTrainer(
        vocab_size=size,
        continuing_subword_prefix=CONTINUATION,
        initial_alphabet=list(_ALPHABET),
        limit_alphabet=len(_ALPHABET),
        # Equally frequent pairs are taken in the order of their ids. The library numbers continuing letters in order of
        # occurrence, which differs between processes; listed here, their ids are fixed.
        special_tokens=[CONTINUATION + c for c in _ALPHABET if c.isalpha()],
        show_progress=False,
    )
    # Only ASCII letters: pieces of numbers and of other scripts would use up the vocabulary.
    trainable.train_from_iterator((w for w in words if w.isascii() and w.isalpha()), trainer)
    learnt = {p for p in trainable.get_vocab() if p.removeprefix(CONTINUATION).isalnum()}
    return sorted(learnt | set(_ALPHABET) | {CONTINUATION + c for c in _ALPHABET})


def fit_pieces(tokenizer: Tokenizer, words: Sequence[str], vectors: Matrix, ridge: float = 1.0) -> Matrix:
    """Rows for the pieces such that the pieces of a word sum to the word's own vector, by ridge regression.

    Args:
        tokenizer: gives each word's pieces.
        words: n words to learn from; those the pieces do not cover are left out.
        vectors: float32 [n, d], their vectors.
        ridge: weight of the squared norm; rare pieces stay near zero.

    Returns:
        float32 [pieces, d].
    """
    first = 1 + len(tokenizer.words)
    cut = [[i - first for i in tokenizer.fallback(word)] for word in words]
    used = [n for n, ids in enumerate(cut) if max(ids) < len(tokenizer.pieces)]
    if not used:
        return np.zeros((len(tokenizer.pieces), vectors.shape[1]), dtype=np.float32)
    rows = np.repeat(np.arange(len(used)), [len(cut[n]) for n in used])
    columns = np.concatenate([cut[n] for n in used])
    counts = scipy.sparse.csr_matrix(
        (np.ones(len(rows), np.float32), (rows, columns)), shape=(len(used), len(tokenizer.pieces))
    )
    gram = (counts.T @ counts).toarray()
    gram[np.diag_indices_from(gram)] += ridge
    return np.asarray(scipy.linalg.solve(gram, counts.T @ vectors[used], assume_a="pos"), dtype=np.float32)


def build(words: Sequence[str], vectors: Matrix, *, pieces: int, buckets: int) -> WordTable:
    """A word table of a vocabulary and its vectors, with pieces and buckets added.

    Args:
        words: the vocabulary, most frequent first.
        vectors: float32 [len(words), d].
        pieces: how many word pieces to learn, 0 for none.
        buckets: how many hash buckets, at least 1.
    """
    tokenizer = Tokenizer(words, learn_pieces(words, pieces), buckets)
    rare = slice(_FREQUENT if len(words) > 2 * _FREQUENT else 0, None)
    rare_words, rare_vectors = words[rare], vectors[rare]
    piece_rows = fit_pieces(tokenizer, rare_words, rare_vectors) if tokenizer.pieces else vectors[:0]
    random = np.random.default_rng(0).standard_normal((buckets, vectors.shape[1])).astype(np.float32)
    # Scaled to the median norm of rare words, so that an unknown name has the same weight as a known one.
    length = float(np.median(np.linalg.norm(rare_vectors, axis=1)))
    random *= length / np.linalg.norm(random, axis=1, keepdims=True)
    padding = np.zeros((1, vectors.shape[1]), np.float32)
    return WordTable(tokenizer, np.concatenate([padding, vectors, piece_rows, random]))


def sif_weights(counts: Mapping[str, int], words: Sequence[str], a: float = 1e-3) -> Matrix:
    """Smooth inverse frequency a / (a + p(w)) (Arora et al. 2017, eq. 3): float32 [n]; 1 for a word never counted."""
    total = sum(counts.values())
    p = np.array([counts.get(word, 0) for word in words], dtype=np.float64) / max(total, 1)
    return (a / (a + p)).astype(np.float32)
