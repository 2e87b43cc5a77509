from benchmarks.measurements import Key, Measurements
from benchmarks.targets import BOTH_CORES, DEFAULT, ECHO, MINILM_BOTH_CORES, PEER, Verdict, best_of, verdicts


def found(**changed: float) -> Measurements:
    """A run that reaches every target, but for what is changed."""
    of = {"ours": 500.0, "ours_64": 800.0, "peer": 3.0, "p99": 4.0, "open_p99": 5.0, "rank": 19.0}
    of |= {"minilm": 5.0, "minilm_64": 6.0} | changed
    measured = Measurements()
    for connections in (1, 16, 64):
        measured.add(0, Key(ECHO, "similarity", 1, "", connections), {"rate": 900.0, "busy_cores": 0.9})
        values = {"rate": of["ours"], "busy_cores": 1.0, "p50": 1.0, "p99": of["p99"]}
        measured.add(0, Key(DEFAULT, "similarity", 1, "warm", connections), values)
    share = Key(DEFAULT, "similarity", 1, "warm", 64, "open, 80%")
    measured.add(0, share, {"rate": 400.0, "p50": 1.0, "p99": of["open_p99"]})
    for cache in ("warm", "cold"):
        measured.add(0, Key(BOTH_CORES, "similarity", 64, cache, 2), {"rate": of["ours_64"]})
    for connections, rate in ((1, of["peer"] / 2), (2, of["peer"])):
        measured.add(0, Key(PEER, "similarity", 64, "", connections), {"rate": rate})
    measured.add(0, Key(PEER, "similarity", 1, "", 16), {"rate": 5.0})
    measured.add(0, Key(MINILM_BOTH_CORES, "similarity", 1, "cold", 16), {"rate": of["minilm"]})
    measured.add(0, Key(MINILM_BOTH_CORES, "similarity", 64, "cold", 2), {"rate": of["minilm_64"]})
    measured.add(0, Key(DEFAULT, "rank", 1000, "cold", 1), {"rate": 50.0, "p50": of["rank"], "p99": 25.0})
    return measured


def told(measured: Measurements) -> list[bool | None]:
    return [verdict.reached for verdict in verdicts(measured)]


def test_all_targets_reached() -> None:
    assert told(found()) == [True] * 10


def test_each_target_can_be_missed() -> None:
    assert told(found(ours=499.0)) == [False] * 3 + [True] * 7
    assert told(found(ours_64=599.0)) == [True] * 3 + [False] * 2 + [True] * 5
    assert told(found(minilm_64=5.9)) == [True] * 5 + [False] + [True] * 4
    assert told(found(minilm=4.9)) == [True] * 6 + [False] + [True] * 3
    assert told(found(p99=5.1)) == [True] * 7 + [False, True, True]
    assert told(found(open_p99=5.1)) == [True] * 8 + [False, True]
    assert told(found(rank=20.0)) == [True] * 9 + [False]


def test_the_peer_is_taken_at_its_best() -> None:
    assert best_of(found(), PEER, 64, "") == Key(PEER, "similarity", 64, "", 2)
    assert best_of(Measurements(), PEER, 64, "") is None


def test_what_was_not_measured_is_neither_reached_nor_missed() -> None:
    assert set(told(Measurements())) == {None}
    assert {verdict.words for verdict in verdicts(Measurements())} == {"not measured"}


def test_a_verdict_says_what_was_measured() -> None:
    said = {verdict.measured for verdict in verdicts(found(p99=7.0, rank=12.0))}
    assert {"50.0%", "267 times", "7.0 at worst (1 pair, warm)", "p50 12.0 ms, p99 25.0 ms"} <= said
    assert Verdict("t", "m", False).words == "**missed**"
