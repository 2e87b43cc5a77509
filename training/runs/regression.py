"""Where an MGIM that counts shared words begins: at a logistic regression on its counts.

Epoch 0 of such a run is that regression, and training adds what the network finds beyond it.
"""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from training.architectures import MGIM
from training.architectures.models import InteractionModel
from training.objectives.pairwise import EVALUATION_BATCH, TargetPairs


@torch.no_grad()
def begin_at_regression(model: InteractionModel, pairs: TargetPairs) -> None:
    """Fit the weights of the counts on training pairs, read in both orders; the rest of the network begins at 0."""
    network = model.network
    if not isinstance(network, MGIM) or network.counts is None:
        return
    counts, output = network.counts, network.output
    counts.weight.zero_()
    counts.bias.zero_()
    network.eval()
    found, target = [], []
    for start in range(0, len(pairs), EVALUATION_BATCH):
        batch = np.arange(start, min(start + EVALUATION_BATCH, len(pairs)))
        left, right = pairs.a.batch(batch), pairs.b.batch(batch)
        for pair in ((*left, *right), (*right, *left)):
            found.append(network.counted(*pair))
            target.append(pairs.target[batch] > 0.5)
    values_NC = torch.cat(found).double().numpy()
    scaler = StandardScaler().fit(values_NC)
    fitted = LogisticRegression(max_iter=1_000).fit(scaler.transform(values_NC), np.concatenate(target))
    weights_C = fitted.coef_[0] / scaler.scale_
    bias = float(fitted.intercept_[0] - weights_C @ scaler.mean_)
    half = torch.tensor([[-0.5], [0.5]], device=output.weight.device)  # of the log odds: less for no, more for yes
    counts.weight.copy_(half * torch.from_numpy(weights_C).to(half))
    counts.bias.copy_(half[:, 0] * bias)
    output.weight.zero_()
