"""Heads over two sentence embeddings (Tai, Socher & Manning 2015, eq. 15), for similarity and entailment; over one.

Shapes: B batch, D embedding dimensions, H hidden, K outputs.
"""

import torch
from torch import Tensor, nn


class PairHead(nn.Module):
    """h_x = a*b, h_+ = |a-b|, h_s = sigmoid(Wx h_x + W+ h_+ + b), output = log softmax(W h_s + b).

    With the ratings as classes it is the similarity head (the score is the expected rating), with three classes
    the entailment head of Wieting et al. (2016), section 4.4. Symmetric in its two sentences, unless `directed`
    adds the term Wd (a-b) inside the sigmoid: a departure, because entailment has a direction.
    """

    def __init__(self, dim: int, outputs: int, hidden: int = 50, *, directed: bool = False) -> None:
        """`hidden` is 50 in Tai et al."""
        super().__init__()
        self.product = nn.Linear(dim, hidden)
        self.difference = nn.Linear(dim, hidden, bias=False)  # the sum needs one bias only
        self.direction = nn.Linear(dim, hidden, bias=False) if directed else None
        self.output = nn.Linear(hidden, outputs)

    def forward(self, a_BD: Tensor, b_BD: Tensor) -> Tensor:
        """Embeddings [B, D], [B, D] -> log-probabilities [B, K]."""
        hidden_BH = self.product(a_BD * b_BD) + self.difference((a_BD - b_BD).abs())
        if self.direction is not None:
            hidden_BH = hidden_BH + self.direction(a_BD - b_BD)
        return torch.log_softmax(self.output(torch.sigmoid(hidden_BH)), dim=-1)


class SentenceHead(nn.Module):
    """h_s = sigmoid(W1 g + b1), output = log softmax(W2 h_s + b2): classes of one sentence.

    Wieting et al. (2016), section 4.4, the head for sentiment.
    """

    def __init__(self, dim: int, outputs: int, hidden: int = 50) -> None:
        """`hidden` as for the pair head; the paper does not give it."""
        super().__init__()
        self.hidden = nn.Linear(dim, hidden)
        self.output = nn.Linear(hidden, outputs)

    def forward(self, sentence_BD: Tensor) -> Tensor:
        """Embeddings [B, D] -> log-probabilities [B, K]."""
        return torch.log_softmax(self.output(torch.sigmoid(self.hidden(sentence_BD))), dim=-1)
