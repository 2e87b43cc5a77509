"""Questions about three FAQs (a bank, a gym, a software product), written to choose settings by: never a figure's set.

The FAQs of `benchmarks/general` are others.
"""

import json
from pathlib import Path

from training.data.pairs import Pair

_FILE = Path(__file__).with_name("faq.json")


def read() -> list[Pair]:
    """Each question with every answer of its FAQ, label 1 for the right one; ``group`` is the question."""
    faqs = json.loads(_FILE.read_text(encoding="utf-8"))
    return [
        Pair(question, answer, label=str(int(place == right)), group=question)
        for faq in faqs.values()
        for question, right in faq["questions"]
        for place, answer in enumerate(faq["answers"])
    ]
