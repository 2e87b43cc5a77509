"""The thread that asks the served models again."""

import pytest

from service.models import checks
from service.models.checks import HealthChecker
from tests.harness.process import until
from tests.harness.service import Client


def test_a_round_that_fails_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHECK_SECONDS", 0.01)
    rounds = []

    def models() -> list[checks.ServedModel]:
        rounds.append(None)
        if len(rounds) == 1:
            raise KeyError("a model that a reload has just taken away")
        return []

    checking = HealthChecker(models)
    checking.start()
    try:
        until(lambda: len(rounds) > 2, "further rounds")
    finally:
        checking.close()


@pytest.mark.anyio
async def test_models_may_be_replaced_while_somebody_goes_over_them(client: Client) -> None:
    registry = client.app.service.registry
    number, going = len(registry), iter(registry.values())
    next(going)
    registry.replace({})
    assert len(list(going)) == number - 1
