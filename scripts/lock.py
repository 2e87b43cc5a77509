"""constraints.txt from a resolution by pip: `python scripts/lock.py REPORT`, where `pip install --report` wrote REPORT.

Only names and versions are kept: where a package came from is the business of the machine that installs it.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

HEADER = """\
# Every version that the service, the training, the tests and the benchmarks are run with; both virtual environments
# and the image install through it. Made by `make lock` with Python {python}; edit pyproject.toml rather than this file.
"""


def pins(report: dict[str, Any]) -> list[str]:
    """`name==version` of every package in a report of pip's, sorted; the project itself is left out."""
    found = {}
    for item in report["install"]:
        if "dir_info" in item["download_info"]:
            continue
        name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
        # 2.13.0+cpu and 2.13.0+cu130 are one release: which build fits is again the machine's business.
        found[name] = item["metadata"]["version"].partition("+")[0]
    return [f"{name}=={version}" for name, version in sorted(found.items())]


if __name__ == "__main__":
    resolution = json.loads(Path(sys.argv[1]).read_text())
    python = resolution["environment"]["python_version"]
    Path("constraints.txt").write_text(HEADER.format(python=python) + "\n".join(pins(resolution)) + "\n")
