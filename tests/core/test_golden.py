"""The file of golden pairs."""

from pathlib import Path

import pytest

from core.errors import ManifestError
from core.golden import GoldenPair, GoldenPairs

PAIRS = GoldenPairs(
    pairs=(
        GoldenPair(a="caf\u00e9 \u732b", b="", raw_score=0.1 + 0.2, score=1 / 3),
        GoldenPair(a="x", b="y", probabilities={"entailment": 0.25, "neutral": 0.5, "contradiction": 0.25}),
        GoldenPair(a="x", b="y", classes=({"no": 1 / 3, "yes": 2 / 3}, {"no": 0.1 + 0.2, "yes": 0.7})),
    )
)


def test_the_file_carries_every_bit(tmp_path: Path) -> None:
    path = tmp_path / "golden.json"
    PAIRS.save(path)
    again = GoldenPairs.load(path)
    assert again == PAIRS
    assert again.pairs[0].raw_score == 0.1 + 0.2
    assert again.pairs[1].score is None
    assert "null" not in path.read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "cannot be read as golden pairs: the file: Invalid JSON"),
        ('{"pairs": [{"a": "x"}]}', "cannot be read as golden pairs: pairs.0.b: Field required"),
        ('{"pairs": [{"a": "x", "b": "y", "c": 1}]}', r"pairs.0.c: Extra inputs are not permitted"),
        ('{"pairs": [{"a": "x", "b": "y", "score": "NaN"}]}', "pairs.0.score: Input should be a finite number"),
        ('{"pairs": [{"a": "x", "b": "y", "probabilities": {"maybe": 1}}]}', "pairs.0.probabilities.maybe"),
        ('{"pairs": [{"a": "x", "b": "y", "classes": [{"no": 1}]}]}', "pairs.0.classes.1: Field required"),
    ],
)
def test_a_malformed_file_is_one_clear_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "golden.json"
    path.write_text(content)
    with pytest.raises(ManifestError, match=f"^{path}: .*{message}") as caught:
        GoldenPairs.load(path)
    assert "\n" not in str(caught.value)
