import pytest

from benchmarks.measurements import Key, Measurements

OURS, BASE = Key("ours", "similarity", 64, "warm", 16), Key("echo", "similarity", 64, "", 16)


def measured(**values: list[float]) -> Measurements:
    """Rates of two servers, round by round."""
    found = Measurements()
    for key, rates in ((OURS, values["ours"]), (BASE, values["base"])):
        for i, rate in enumerate(rates):
            found.add(i, key, {"rate": rate, "p50": 1.0, "p99": rate / 10})
    return found


def test_a_ratio_is_taken_within_a_round_before_the_median() -> None:
    found = measured(ours=[10.0, 60.0, 30.0], base=[20.0, 60.0, 300.0])
    assert found.ratio(OURS, BASE) == 0.5  # of 0.5, 1 and 0.1; medians by themselves would give 30 / 60
    assert measured(ours=[10.0, 90.0, 30.0], base=[20.0, 90.0, 10.0]).ratio(OURS, BASE) == 1.0


def test_rounds_that_lack_one_of_the_two_or_got_nothing_done_have_no_ratio() -> None:
    assert measured(ours=[10.0, 60.0], base=[20.0]).ratio(OURS, BASE) == 0.5
    assert measured(ours=[10.0], base=[0.0]).ratio(OURS, BASE) is None
    assert Measurements().ratio(OURS, BASE) is None


def test_a_base_that_its_load_cannot_keep_busy_counts_by_its_cpu_time() -> None:
    found = Measurements()
    found.add(0, OURS, {"rate": 400.0, "busy_cores": 1.0})
    found.add(0, BASE, {"rate": 500.0, "busy_cores": 0.5})
    assert found.ratio(OURS, BASE) == 0.8
    assert found.ratio_for_cpu(OURS, BASE) == 0.4


def test_medians_and_quotients_are_over_the_rounds() -> None:
    found = measured(ours=[30.0, 10.0, 20.0], base=[1.0])
    assert found.median(OURS, "rate") == 20.0
    assert found.quotient(OURS, "p99", "p50") == 2.0
    assert found.median(OURS, "lag_p99") is None
    assert found.median(Key("nobody", "rank", 1, "", 1), "rate") is None


def test_shares_are_medians_by_name() -> None:
    found = Measurements()
    for i, shares in enumerate(({"memory": 0.0}, {"memory": 0.5, "redis": 1.0}, {"memory": 1.0})):
        found.add(i, OURS, {"found": shares})
    assert found.shares(OURS) == {"memory": 0.5, "redis": 1.0}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (Key("x", "rank", 1000, "cold", 1), "x: 1,000 candidates, cold, 1 connection, closed"),
        (Key("x", "similarity", 1, "", 64, "open, 50%"), "x: 1 pair, 64 connections, open, 50%"),
    ],
)
def test_a_key_in_words(key: Key, words: str) -> None:
    assert key.words == words
