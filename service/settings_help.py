"""Every setting in words, in the order and under the headings of `service/settings.py`."""

import inspect
import re
from textwrap import wrap
from typing import NamedTuple

from service.settings import PREFIX, Settings

_HEADING = re.compile(r"^    # (.+)$")
_FIELD = re.compile(r"^    (\w+): ")
WIDTH = 100  # characters of a line at a terminal


class SettingHelp(NamedTuple):
    """Variable, default and description of one setting."""

    variable: str
    default: str  # "none" where there is none
    description: str


def groups() -> list[tuple[str, list[SettingHelp]]]:
    """Each heading with its settings."""
    found: list[tuple[str, list[SettingHelp]]] = []
    for line in inspect.getsource(Settings).splitlines():
        if line.startswith("    @"):
            break
        if heading := _HEADING.match(line):
            found.append((heading[1][0].upper() + heading[1][1:], []))
        elif (field := _FIELD.match(line)) and field[1] in Settings.model_fields:
            found[-1][1].append(_setting(field[1]))
    return found


def text() -> str:
    """All of them for a terminal."""
    parts = [
        "Environment variables of the service, all optional; an empty one counts as not set.",
        "`semblance serve --set NAME=VALUE` takes the same settings without SEMBLANCE_, in small letters.",
    ]
    for heading, settings in groups():
        parts += ["", heading]
        for setting in settings:
            parts.append(f"  {setting.variable} [{setting.default}]")
            parts += wrap(setting.description, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(parts) + "\n"


def _setting(name: str) -> SettingHelp:
    field = Settings.model_fields[name]
    value = field.get_default(call_default_factory=True)
    return SettingHelp(f"{PREFIX}{name.upper()}", _written(value), " ".join((field.description or "").split()))


def _written(value: object) -> str:
    """A default as the variable would hold it."""
    if value is None or value == () or value == {}:
        return "none"
    if isinstance(value, tuple):
        return ":".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
