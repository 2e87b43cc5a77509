"""The supervised split of STS: shares by set, no leaks, the same for the same seed."""

import pytest

from training.corpora import sts_split
from training.corpora.leakage import pair_key
from training.corpora.readers import sts
from training.pairs import Pair

SETS = [("2014-test", "images"), ("2015-test", "belief")]


@pytest.fixture
def pairs(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sts, "TRANSFER_SETS", SETS)
    for (year, name), count in zip(SETS, (40, 20), strict=True):
        rows = [(str(i % 6), f"{name} first {i}", f"{name} second {i}") for i in range(count)]
        write(f"sts/{year}/{name}.tsv", sts.HEADER, *rows)


def sizes(part: tuple[Pair, ...]) -> dict[str, int]:
    groups = [pair.group for pair in part]
    return {group: groups.count(group) for group in groups}


def test_every_set_gives_40_10_and_50_percent(pairs) -> None:
    split = sts_split.read(seed=3)
    assert sizes(split.train) == {"2014-test/images": 16, "2015-test/belief": 8}
    assert sizes(split.dev) == {"2014-test/images": 4, "2015-test/belief": 2}
    assert sizes(split.test) == {"2014-test/images": 20, "2015-test/belief": 10}
    assert len({p.a for part in (split.train, split.dev, split.test) for p in part}) == 60


def test_a_pair_of_a_held_out_part_is_in_no_other(write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sts, "TRANSFER_SETS", SETS)
    rows = [(str(i % 6), f"Number {i}.", f"and {i}") for i in range(20)]
    turned = [(score, b, a.upper()) for score, a, b in rows]  # the same pairs again, in the other order
    for (year, name), content in zip(SETS, (rows, turned), strict=True):
        write(f"sts/{year}/{name}.tsv", sts.HEADER, *content)
    split = sts_split.read(seed=0)
    train, dev, test = ({pair_key(p.a, p.b) for p in part} for part in (split.train, split.dev, split.test))
    assert len(split.test) == 20  # never cut
    assert (train & dev, train & test, dev & test) == (set(), set(), set())
    assert len(train | dev | test) == 20  # nothing is lost altogether
