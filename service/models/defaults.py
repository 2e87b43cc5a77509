"""Which model answers a route when a request names none."""

import logging
from collections.abc import Iterator, Sequence

from service.errors import InvalidRequest, some
from service.models.model import Capability
from service.models.registry import Need, Registry
from service.settings import PREFIX, Settings

log = logging.getLogger(__name__)

MAIN = ("avg-paraphrase", "minilm-small", "minilm", "minilm-cross")  # listed first; the others are "also here"
# Where the settings name none: the first of these among the models, else the only one that can.
USUAL: dict[Capability, tuple[str, ...]] = {
    "similarity": ("avg-paraphrase",),
    "embedding": ("avg-paraphrase",),
    "explanation": ("avg-paraphrase",),
    "entailment": ("pwim-general", "avg-sick"),  # the first knows text of many kinds, the other captions
}
ROUTES: dict[str, tuple[str, Capability]] = {  # the setting, and what the model must be able to
    "/similarity": ("default_similarity", "similarity"),
    "/rank": ("default_rank", "similarity"),
    "/entailment": ("default_entailment", "entailment"),
    "/embed": ("default_similarity", "embedding"),
    "/explain": ("default_similarity", "explanation"),
}


class NoDefault(InvalidRequest):
    """The request names no model, and the route has no default."""

    def __init__(self, route: str, able: list[str]) -> None:
        super().__init__(f"there is no default model of {route}; models that can: {some(able)}", field="model")


class Defaults(dict[str, str]):
    """Route -> model, for the routes that have one; asking for another raises `NoDefault`."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        """Choose, and log the routes without a model."""
        self._registry = registry
        for route, (setting, capability) in ROUTES.items():
            name = getattr(settings, setting) or chosen(capability, registry.able(capability))
            if name is not None and capability in registry[name].capabilities:
                self[route] = name
            else:
                log.warning("%s", NoDefault(route, self._able(route)))

    def __missing__(self, route: str) -> str:
        raise NoDefault(route, self._able(route))

    def needs(self) -> Iterator[tuple[str, Need]]:
        """What must stay among the models: name for messages, need."""
        for route, name in self.items():
            setting, capability = ROUTES[route]
            yield PREFIX + setting.upper(), Need(name, capability)

    def _able(self, route: str) -> list[str]:
        return self._registry.able(ROUTES[route][1])


def needs_of(settings: Settings) -> Iterator[tuple[str, Need]]:
    """What the settings name: name of the setting, need."""
    wanted: tuple[tuple[str, Capability], ...] = (
        ("default_similarity", "similarity"),
        ("default_rank", "similarity"),
        ("default_rerank", "similarity"),
        ("default_entailment", "entailment"),
    )
    for setting, capability in wanted:
        if (name := getattr(settings, setting)) is not None:
            yield PREFIX + setting.upper(), Need(name, capability)


def main_models(settings: Settings) -> list[str]:
    """Names of the models that are listed first, if they are there: those of settings, and those of `MAIN`."""
    return [*(need.name for _, need in needs_of(settings)), *settings.preload, *settings.models, *MAIN]


def chosen(capability: Capability, able: Sequence[str]) -> str | None:
    """The usual one of the models with a capability, or the only one; None where there are several, or none."""
    usual = next((name for name in USUAL[capability] if name in able), None)
    return usual or (able[0] if len(able) == 1 else None)
