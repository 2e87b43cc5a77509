import pytest

from benchmarks.measurements import Key, Measurements
from benchmarks.targets import (
    BOTH_CORES,
    DEFAULT,
    ECHO,
    FLOOR,
    INTERACTION,
    MINILM_BOTH_CORES,
    PEER,
    REDIS,
    Verdict,
    best_of,
    verdicts,
)


def found(**changed: float) -> Measurements:
    """A run that reaches every target, but for what is changed."""
    of = {"warm": 600.0, "cold": 250.0, "floor": 220.0, "ours_64": 800.0, "peer": 3.0, "open_p99": 5.0, "rank": 84.0}
    of |= {"minilm": 5.0, "minilm_64": 6.0, "redis": 6700.0, "pair": 50.0} | changed
    measured = Measurements()
    measured.add(0, Key(ECHO, "similarity", 1, "", 16), {"rate": 900.0, "busy_cores": 0.9})
    for cache in ("warm", "cold"):
        measured.add(0, Key(DEFAULT, "similarity", 1, cache, 16), {"rate": of[cache], "busy_cores": 1.0})
        measured.add(0, Key(BOTH_CORES, "similarity", 64, cache, 2), {"rate": of["ours_64"]})
    measured.add(0, Key(FLOOR, "similarity", 64, "", 1), {"rate": of["floor"], "busy_cores": 1.0})
    measured.add(0, Key(DEFAULT, "similarity", 64, "cold", 2), {"rate": 50.0, "busy_cores": 0.5})
    for connections, rate in ((1, of["peer"] / 2), (2, of["peer"])):
        measured.add(0, Key(PEER, "similarity", 64, "", connections), {"rate": rate})
    measured.add(0, Key(PEER, "similarity", 1, "", 16), {"rate": 5.0})
    measured.add(0, Key(MINILM_BOTH_CORES, "similarity", 1, "cold", 16), {"rate": of["minilm"]})
    measured.add(0, Key(MINILM_BOTH_CORES, "similarity", 64, "cold", 2), {"rate": of["minilm_64"]})
    measured.add(0, Key(DEFAULT, "rank", 1000, "cold", 1), {"rate": of["rank"], "busy_cores": 1.0})
    measured.add(0, Key(REDIS, "similarity", 1, "redis", 16), {"rate": of["redis"], "busy_cores": 1.0})
    for model in INTERACTION:
        measured.add(0, Key(model, "similarity", 64, "cold", 2), {"rate": of["pair"]})
    for app, cache, p99 in ((DEFAULT, "warm", of["open_p99"]), (ECHO, "", 5.0)):
        measured.add(0, Key(app, "similarity", 1, cache, 64, "open, 50%"), {"rate": 4.0, "p50": 1.0, "p99": p99})
    return measured


def told(measured: Measurements) -> list[bool | None]:
    return [verdict.reached for verdict in verdicts(measured)]


def test_all_targets_reached() -> None:
    assert told(found()) == [True] * 13


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({"warm": 599.0}, [0]),
        ({"cold": 249.0}, [1]),
        ({"floor": 221.0}, [2]),
        ({"ours_64": 599.0}, [3, 4]),
        ({"minilm_64": 5.9}, [5]),
        ({"minilm": 4.9}, [6]),
        ({"rank": 83.0}, [7]),
        ({"redis": 6600.0}, [8]),
        ({"pair": 46.0}, [11]),
        ({"pair": 9.0}, [9, 10, 11]),
        ({"open_p99": 5.1}, [12]),
    ],
)
def test_each_target_can_be_missed(changed: dict[str, float], missed: list[int]) -> None:
    assert [i for i, reached in enumerate(told(found(**changed))) if not reached] == missed


def test_the_peer_is_taken_at_its_best() -> None:
    assert best_of(found(), PEER, 64, "") == Key(PEER, "similarity", 64, "", 2)
    assert best_of(Measurements(), PEER, 64, "") is None


def test_what_was_not_measured_is_neither_reached_nor_missed() -> None:
    assert set(told(Measurements())) == {None}
    assert {verdict.words for verdict in verdicts(Measurements())} == {"not measured"}


def test_a_verdict_says_what_was_measured() -> None:
    said = {verdict.measured for verdict in verdicts(found(open_p99=7.0, rank=50.0))}
    assert {"60.0%", "25.0%", "2.20 times", "267 times", "7.0, the echo's 5.0", "20.0 ms", "149 us", "3,200"} <= said
    assert Verdict("t", "m", False).words == "**missed**"
