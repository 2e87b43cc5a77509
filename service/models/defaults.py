"""Which model answers a route when a request names none."""

import logging
from collections.abc import Iterator, Sequence

from service.errors import InvalidRequest, some
from service.models.registry import ModelRegistry, RequiredModel
from service.parsing import ALL, NONE
from service.scoring.scorer import Capability
from service.settings import PREFIX, Settings

log = logging.getLogger(__name__)

# GET /models lists these first; `make models-large` builds the last two.
MAIN = ("minilm-small", "avg-paraphrase", "minilm", "minilm-cross", "mpnet", "mpnet-cross")
# The default where the settings name none: the first of these that is there, else the only model with the capability.
USUAL: dict[Capability, tuple[str, ...]] = {
    "similarity": ("minilm-small", "avg-paraphrase"),
    "embedding": ("minilm-small", "avg-paraphrase"),
    "explanation": ("minilm-small", "avg-paraphrase"),
    # The first is right most often, the second cheaper, the third knows captions alone.
    "entailment": ("minilm-cross", "pwim-general", "avg-sick"),
}
# Of the second stage of /rank, the first that is there: the larger one costs four times as much.
USUAL_RERANKERS = ("mpnet-cross", "minilm-cross")
USUAL_CLASSIFIER = "sentiment"  # of /classify without labels
OPENED_FIRST = ("/similarity", "/rank")  # their defaults; what most callers ask
_LISTED_FIRST = ("SEMBLANCE_MODELS", "SEMBLANCE_PRELOAD")
ROUTES: dict[str, tuple[str, Capability]] = {  # the setting, and what the model must be able to
    "/similarity": ("default_similarity", "similarity"),
    "/rank": ("default_rank", "similarity"),
    "/entailment": ("default_entailment", "entailment"),
    "/claims": ("default_entailment", "entailment"),
    "/embed": ("default_similarity", "embedding"),
    "/explain": ("default_similarity", "explanation"),
}


class NoDefault(InvalidRequest):
    """The request names no model, and the route has no default."""

    def __init__(self, route: str, able: list[str]) -> None:
        super().__init__(f"there is no default model of {route}; models that can: {some(able)}", field="model")


class Defaults(dict[str, str]):
    """Route -> model, for the routes that have one; asking for another raises `NoDefault`."""

    def __init__(self, settings: Settings, registry: ModelRegistry) -> None:
        """Choose, and log the routes without a model."""
        self._registry, self._settings = registry, settings
        for route, (setting, capability) in ROUTES.items():
            able = registry.able(capability)
            name = getattr(settings, setting) or chosen(capability, able)
            if name is not None and capability in registry[name].capabilities:
                self[route] = name
            else:
                log.warning("%s", NoDefault(route, self._able(route)))

    def __missing__(self, route: str) -> str:
        raise NoDefault(route, self._able(route))

    def required(self) -> Iterator[RequiredModel]:
        """The models of routes, which must stay."""
        for route, name in self.items():
            setting, capability = ROUTES[route]
            yield RequiredModel(PREFIX + setting.upper(), name, capability)

    def opened_first(self) -> list[str]:
        """Names of the models that are open before the service is ready: another route's if the settings name it."""
        settings = self._settings
        return [
            name for route, name in self.items() if route in OPENED_FIRST or getattr(settings, ROUTES[route][0]) == name
        ]

    def _able(self, route: str) -> list[str]:
        return self._registry.able(ROUTES[route][1])


def required_by(settings: Settings) -> Iterator[RequiredModel]:
    """The models that settings name: those of routes first."""
    of_routes: tuple[tuple[str, Capability], ...] = (
        ("default_similarity", "similarity"),
        ("default_rank", "similarity"),
        ("default_entailment", "entailment"),
    )
    for setting, capability in of_routes:
        if (name := getattr(settings, setting)) is not None:
            yield RequiredModel(PREFIX + setting.upper(), name, capability)
    for name in settings.models:
        yield RequiredModel("SEMBLANCE_MODELS", name)
    for name in settings.preload:
        if name not in (ALL, NONE):
            yield RequiredModel("SEMBLANCE_PRELOAD", name)


def main_models(settings: Settings) -> list[str]:
    """Names of the models that are listed first, if they are there: those of settings, and those of `MAIN`."""
    named = (each.name for each in required_by(settings) if each.capability or each.setting in _LISTED_FIRST)
    return [*named, *MAIN]


def chosen(capability: Capability, able: Sequence[str]) -> str | None:
    """The usual one of the models with a capability, or the only one; None where there are several, or none."""
    usual = next((name for name in USUAL[capability] if name in able), None)
    return usual or (able[0] if len(able) == 1 else None)
