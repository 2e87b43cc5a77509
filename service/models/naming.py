"""The names of models after a reload, and what a reload refuses."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from service.models.model import Model
from service.models.opener import public
from service.models.registry import Required, unmet
from service.models.repository import FileStamps, Release
from service.parsing import LATEST

Outcome = Literal["unchanged", "reloaded", "added", "removed", "failed"]
Names = Mapping[str, Model]


class Refusal(NamedTuple):
    """A model or version that a reload did not serve."""

    model: str  # its id, or the name of its folder
    reason: str
    stamps: FileStamps  # of its files at that time
    final: bool = True  # false if the folder may still be being copied

    @property
    def public_reason(self) -> str:
        """The reason without paths of this machine, for readiness, which everybody can read."""
        return public(self.reason)


def names_after(
    name: str,
    old: Names,
    wanted: Mapping[str, Release],
    models: Names,
    *,
    served: Names,
    aliases: Mapping[str, str],
    required: Sequence[Required],
) -> tuple[dict[str, Model], dict[str, Refusal]]:
    """The new names of one model, and refusals of changes that contradict a setting.

    Args:
        name: id of the model.
        old: its names now.
        wanted: its names by the models folder.
        models: opened models, by the names of their releases.
        served: the names of all models now.
        aliases: of the settings.
        required: models that settings name.
    """
    if not old and name in aliases:
        other = aliases[name]
        return {}, {name: Refusal(name, f"SEMBLANCE_MODEL_ALIASES makes {name} a name of {other}", {})}
    new: dict[str, Model] = {}
    for called, release in wanted.items():
        if (model := models.get(release.name, old.get(called))) is not None:
            new[called] = model
    refusals: dict[str, Refusal] = {}
    for each in (*required, *(Required("SEMBLANCE_MODEL_ALIASES", other) for other in aliases.values())):
        if each.name in old and each.name not in new:
            refusals.setdefault(name, Refusal(name, f"{each.name} is gone, but {each.setting} needs it", {}))
            new[each.name] = old[each.name]
    if name not in new and name in old and new:
        new[name] = old[name]
    if name not in new:  # versions alone, without the bare id, are not served
        return {}, refusals
    others = {n: model for n, model in served.items() if model.release.id != name}
    for each, reason in unmet(required, others | new):
        if each.name in old:  # the new model lacks a capability that a setting needs
            return dict(old), {name: Refusal(name, reason, {})}
    for model in list(new.values()):
        new.setdefault(model.release.name, model)
    return new, refusals


def names_of_model(name: str, names: Names) -> dict[str, Model]:
    """The names of the model with this id, and of its versions."""
    return {called: model for called, model in names.items() if model.release.id == name}


def outcome_of(old: Names, new: Names, refusals: Mapping[str, Refusal]) -> Outcome:
    """The outcome of a reload for one model, from its names before and after."""
    if any(refusal.final for refusal in refusals.values()):
        return "failed"
    # Without ID@latest, which may move when other versions come or go.
    before, after = ({n: model for n, model in names.items() if not n.endswith(LATEST)} for names in (old, new))
    if before == after:
        return "unchanged"
    return "reloaded" if old and new else "added" if new else "removed"
