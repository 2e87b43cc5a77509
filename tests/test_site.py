"""What the documentation's site is made of, without building it."""

import json
import re
from pathlib import Path

import jsonschema
import yaml

from scripts.site import commands_page, rewrite
from service.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parent.parent


def test_every_setting_is_described() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for name, field in Settings.model_fields.items():
        assert field.description, name
        (row,) = re.findall(rf"^\| `{PREFIX}{name.upper()}` \|.*$", page, flags=re.MULTILINE)
        assert len(row.split(" | ")[2]) > 10, row


def test_every_command_says_what_it_does() -> None:
    page = commands_page()
    for command in ("semblance batch", "python -m training publish", "python -m workbench import"):
        assert f"### `{command}`\n" in page
        assert f"$ {command} [OPTIONS]" in page


def test_links_lead_to_pages_of_the_site_or_nowhere() -> None:
    pages = {"papers/RESULTS.md": "results/index.md", "models/a/README.md": "reference/models/a.md"}
    known = [*pages.values(), "operating.md", "papers/gran.md"]
    text = "[x](../../papers/RESULTS.md#every-model) [y](gran.md) [z](../../service/app.py) [w](https://a.example/)"
    found = rewrite(text, here="papers/pwim.md", origin="docs/papers/pwim.md", pages=pages, known=known)
    assert found == "[x](../results/index.md#every-model) [y](gran.md) z [w](https://a.example/)"
    # A page of docs/ that is missing stays a link, so that the build refuses it; code is left alone.
    kept = "[x](missing.md)\n```sh\n[y](../service/app.py)\n```\n"
    assert rewrite(kept, here="a.md", origin="docs/a.md", pages=pages, known=known) == kept


def test_the_kubernetes_examples_are_values_of_the_chart() -> None:
    schema = json.loads((ROOT / "deploy/chart/values.schema.json").read_text())
    examples: dict[str, dict[str, object]] = {}
    for name in ("kubernetes", "gpu"):
        page = (ROOT / f"docs/how-to/{name}.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
        examples |= {f"{name} {number}": yaml.safe_load(text) for number, text in enumerate(blocks)}
    assert len(examples) >= 4
    for where, values in examples.items():
        jsonschema.validate(values, schema)
        settings = values.get("settings", {})
        assert isinstance(settings, dict)
        assert {name for name in settings if name.lower() not in Settings.model_fields} == set(), where
