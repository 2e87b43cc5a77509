"""Entailment from frozen MaLSTM embeddings: an RBF support vector machine, one against the rest.

Mueller & Thyagarajan (2016), "Entailment classification": features |h_a - h_b| and h_a * h_b, C and gamma by 5-fold
cross-validation. scikit-learn fits it; the module here computes the same decision values and is exported as a HEAD
graph.

Shapes: B pairs, D dimensions of an embedding, F = 2 D features, S support vectors, K = 3 labels.
"""

import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import Tensor, nn

logger = logging.getLogger(__name__)

Floats = npt.NDArray[np.floating]
Labels = npt.NDArray[np.int64]
FOLDS = 5
COSTS = (0.5, 1.5, 4.5)
GAMMAS = (0.00125, 0.0025, 0.005, 0.01)


def pair_features(a_BD: Tensor, b_BD: Tensor) -> Tensor:
    """|a - b| and a * b, side by side: [B, D], [B, D] -> [B, 2 D]."""
    return torch.cat([(a_BD - b_BD).abs(), a_BD * b_BD], dim=1)


class SupportVectorHead(nn.Module):
    """The fitted machine as a module: embeddings [B, D], [B, D] -> log-probabilities [B, K].

    decision_k = sum_s coefficient_sk exp(-gamma ||x - vector_s||^2) + intercept_k over standardised features x;
    log softmax of the decisions over one temperature. Computed in float64, as in scikit-learn, because thousands of
    terms are summed.
    """

    mean: Tensor
    deviation: Tensor
    vectors: Tensor
    coefficients: Tensor
    intercepts: Tensor
    gamma: Tensor
    temperature: Tensor

    def __init__(self, dim: int, vectors: int, labels: int) -> None:
        """A machine of that size, all zeros; `fitted` or `load_state_dict` fills it."""
        super().__init__()
        for name, shape in (
            ("mean", (2 * dim,)),
            ("deviation", (2 * dim,)),
            ("vectors", (vectors, 2 * dim)),
            ("coefficients", (vectors, labels)),
            ("intercepts", (labels,)),
            ("gamma", ()),
            ("temperature", ()),
        ):
            self.register_buffer(name, torch.zeros(shape))

    @classmethod
    def fitted(cls, machine: Pipeline, temperature: float) -> "SupportVectorHead":
        """The module of a fitted pipeline of StandardScaler and OneVsRestClassifier(SVC)."""
        scaler, classifier = machine[0], machine[1]
        each: Sequence[SVC] = classifier.estimators_
        used = np.unique(np.concatenate([machine.support_ for machine in each]))
        vectors = np.zeros((len(used), scaler.n_features_in_))
        coefficients = np.zeros((len(used), len(each)))
        for k, one in enumerate(each):
            at = np.searchsorted(used, one.support_)
            vectors[at] = one.support_vectors_
            coefficients[at, k] = one.dual_coef_[0]
        head = cls(scaler.n_features_in_ // 2, len(used), len(each))
        values = {
            "mean": scaler.mean_,
            "deviation": scaler.scale_,
            "vectors": vectors,
            "coefficients": coefficients,
            "intercepts": np.array([one.intercept_[0] for one in each]),
            "gamma": np.array(each[0].gamma),
            "temperature": np.array(temperature),
        }
        head.load_state_dict({name: torch.from_numpy(np.asarray(value)) for name, value in values.items()})
        return head

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> "SupportVectorHead":
        """The module whose `state_dict` this is."""
        vectors, features = state["vectors"].shape
        head = cls(features // 2, vectors, state["coefficients"].shape[1])
        head.load_state_dict(state)
        return head

    def decisions(self, a_BD: Tensor, b_BD: Tensor) -> Tensor:
        """Signed distances to the boundaries, float64 [B, K]: scikit-learn's decision function."""
        x = (pair_features(a_BD.double(), b_BD.double()) - self.mean.double()) / self.deviation.double()
        vectors = self.vectors.double()
        squared = (x * x).sum(1, keepdim=True) + (vectors * vectors).sum(1) - 2 * x @ vectors.T
        return torch.exp(-self.gamma.double() * squared) @ self.coefficients.double() + self.intercepts.double()

    def forward(self, a_BD: Tensor, b_BD: Tensor) -> Tensor:
        """Embeddings [B, D], [B, D] -> log-probabilities [B, K]."""
        return torch.log_softmax(self.decisions(a_BD, b_BD) / self.temperature.double(), dim=-1).float()


def machine(cost: float = 1.0, gamma: float = 0.00125) -> Pipeline:
    """The classifier: standardised features, then one RBF machine a label."""
    return make_pipeline(StandardScaler(), OneVsRestClassifier(SVC(C=cost, gamma=gamma, kernel="rbf", cache_size=500)))


def fit_svm(a_ND: Floats, b_ND: Floats, label_N: Labels) -> SupportVectorHead:
    """Fit on N embedded pairs and their labels 0..K-1; C, gamma and the temperature by 5-fold cross-validation.

    The temperature minimises the negative log-likelihood of the held-out decisions; it changes probabilities,
    but not the most likely label.
    """
    features = pair_features(*(torch.from_numpy(np.asarray(side)).double() for side in (a_ND, b_ND))).numpy()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(
        machine(),
        {"onevsrestclassifier__estimator__C": COSTS, "onevsrestclassifier__estimator__gamma": GAMMAS},
        cv=folds,
        refit=True,
    )
    search.fit(features, label_N)
    best = search.best_estimator_
    held_out = cross_val_predict(best, features, label_N, cv=folds, method="decision_function")

    def loss(log_temperature: float) -> float:
        chosen = log_softmax(held_out / np.exp(log_temperature), axis=1)[np.arange(len(label_N)), label_N]
        return -float(chosen.mean())

    temperature = float(np.exp(minimize_scalar(loss, bounds=(-5.0, 3.0), method="bounded").x))
    cost, gamma = (search.best_params_[f"onevsrestclassifier__estimator__{name}"] for name in ("C", "gamma"))
    logger.info(
        "entailment: C %g, gamma %g, cross-validated accuracy %.4f, temperature %.3f",
        *(cost, gamma, search.best_score_, temperature),
    )
    return SupportVectorHead.fitted(best, temperature)
