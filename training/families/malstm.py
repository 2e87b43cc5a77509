"""MaLSTM: a siamese model whose score is its training objective, calibrated on pairs that it did not learn.

After training come out-of-fold scores for the calibration and the support vector machine for entailment.
"""

import copy
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from sklearn.model_selection import KFold

from core.files import replacing
from core.manifest import SimilarityTask
from core.scoring import Calibration
from training.families.siamese import SiameseFamily, raw_and_rated
from training.models.heads import PairHead, SentenceHead
from training.models.kinds import SiameseModel
from training.models.svm import SupportVectorHead, fit_svm
from training.objectives.development import encode_all
from training.objectives.manhattan import ManhattanConfig, ManhattanObjective
from training.objectives.objective import Objective
from training.objectives.supervised import LABELS, LabelledPairs
from training.publish.calibrate import fit_local_linear
from training.publish.runtime import PublishedModel
from training.recipes.sources.rated import supervised_pairs
from training.train.loop import train

logger = logging.getLogger(__name__)

OUT_OF_FOLD_NAME, ENTAILMENT_NAME = "out-of-fold.npz", "entailment.pt"
FOLDS = 5


@dataclass(frozen=True)
class MaLSTMFamily(SiameseFamily):
    """A run whose objective is the score itself."""

    config: ManhattanConfig

    def heads(self, dim: int) -> dict[str, PairHead | SentenceHead]:
        """The head that helps in training; the machine takes its place."""
        return {"entailment": PairHead(dim, len(LABELS))} if self.config.entailment_weight > 0 else {}

    def objective(self, model: SiameseModel, teacher: Path | None) -> ManhattanObjective:
        """Rated pairs, and their labels where the entailment head has a weight."""
        rated, held = (LabelledPairs(part, self.table.tokenizer, self.recipe.max_tokens) for part in self.data(teacher))
        return ManhattanObjective(model, rated, held, self.config, self.recipe.schedule.batch_size, self.seed)

    def after_training(self, objective: Objective, teacher: Path | None) -> None:
        """Write the files that the config requires to the run's folder; existing files are kept."""
        assert isinstance(objective, ManhattanObjective)
        if self.config.calibrate_on == "out-of-fold" and not (path := self.folder / OUT_OF_FOLD_NAME).is_file():
            g = self.out_of_fold(objective)
            with replacing(path) as partial, partial.open("wb") as file:
                np.savez(file, g=g, rating=objective.training.rating)
        if self.config.entailment and not (path := self.folder / ENTAILMENT_NAME).is_file():
            labelled = LabelledPairs(supervised_pairs(), self.table.tokenizer, self.recipe.max_tokens)
            objective.model.eval()
            with torch.no_grad():
                a, b = (encode_all(objective.model, side).cpu().numpy() for side in (labelled.a, labelled.b))
            head = fit_svm(a, b, labelled.label)
            with replacing(path) as partial:
                torch.save(head.state_dict(), partial)

    def out_of_fold(self, objective: ManhattanObjective) -> npt.NDArray[np.float64]:
        """g of every training pair [N] under a model trained, as the run was, on the other four fifths of the pairs.

        A curve fitted on g of the run's own training pairs, to which the model was fitted, is too steep for new pairs.
        """
        pairs, start = objective.training, self.build(None)
        g = np.zeros(len(pairs))
        folds = KFold(FOLDS, shuffle=True, random_state=self.seed).split(np.arange(len(pairs)))
        for fold, (rows, held_out) in enumerate(folds):
            model, temporary = copy.deepcopy(start), self.folder / f"fold-{fold}"
            part = ManhattanObjective(
                *(model, pairs, objective.development, self.config, objective.batch_size, self.seed), rows=rows
            )
            result = train(part, self.recipe.optimiser, self.recipe.schedule, temporary, seed=self.seed)
            logger.info("fold %d of %d: development %.4f", fold + 1, FOLDS, result.best["selection"])
            model.eval()
            with torch.no_grad():
                a, b = (model.encode(side.batch(held_out)) for side in (pairs.a, pairs.b))
                g[held_out] = part.similarity(a, b).cpu().numpy()
            shutil.rmtree(temporary)
        return g

    def load(self) -> SiameseModel:
        """The trained model, with the support vector machine where one was fitted."""
        model = super().load()
        if (fitted := self.folder / ENTAILMENT_NAME).is_file():
            model.heads["entailment"] = SupportVectorHead.from_state(torch.load(fitted, weights_only=True))
        return model

    def similarity(self, model: SiameseModel) -> SimilarityTask:
        """The comparison that was trained, on the scale of the ratings."""
        comparison, scale = self.config.similarity, self.config.scale
        lowest = -1.0 if comparison == "cosine" else 0.0
        return SimilarityTask(comparison=comparison, raw_range=(lowest, 1.0), label_scale=scale, symmetric=True)

    def calibration(self, model: PublishedModel, task: SimilarityTask, scale: tuple[float, float]) -> Calibration:
        """Local-linear regression of the ratings, on the part that the config names."""
        if self.config.calibrate_on == "out-of-fold":
            with np.load(self.folder / OUT_OF_FOLD_NAME, allow_pickle=False) as scores:
                raw, gold = scores["g"].astype(np.float64), scores["rating"].astype(np.float64)
        else:
            raw, gold = raw_and_rated(model, supervised_pairs())
        return fit_local_linear(raw, gold, target_range=scale)
