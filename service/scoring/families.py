"""The families of models: to add one, add its scorer here and its name in `contract/manifest.py`."""

from collections.abc import Mapping

from contract.manifest import Family
from service.scoring.interaction import InteractionScorer
from service.scoring.scorer import Scorer
from service.scoring.siamese import SiameseScorer

FAMILIES: Mapping[Family, type[Scorer]] = {"siamese": SiameseScorer, "interaction": InteractionScorer}
