"""Backends, and their circuit breaker: after a failure requests skip one until a background probe succeeds."""

import logging
from typing import Protocol

from service.observe.logs import fields

log = logging.getLogger(__name__)

PROBE_SECONDS = 2.0  # between one probe and the next


class Backend(Protocol):
    """An optional service, such as Redis."""

    @property
    def problems(self) -> list[str]:
        """What is wrong, for `/health/ready`."""

    async def probe(self) -> None:
        """Check whether it works."""

    async def close(self) -> None:
        """Close the connections to it."""


class Breaker:
    """Whether a backend works; logs each change once.

    Attempts run concurrently, and one may end with news older than the last change. Each attempt therefore passes the
    value of `changes` at its begin, and is ignored if `changes` has grown since.
    """

    def __init__(self, works: str, fails: str, address: str) -> None:
        """Start in the unknown state; `works` and `fails` are log messages, `address` is without credentials."""
        self._works = works
        self._fails = fails
        self.address = address
        self.up: bool | None = None  # unknown until the first attempt
        self.reason = ""  # of the failure; without secrets, /health/ready shows it
        self.changes = 0  # of `up`

    @property
    def allows(self) -> bool:
        """Whether requests use the backend."""
        return self.up is not False

    def succeeded(self, began: int) -> None:
        """An attempt that began when `changes` was `began` was answered."""
        if self.up is True or began != self.changes:
            return
        log.info(self._works, extra=fields(address=self.address))
        self.up = True
        self.reason = ""
        self.changes += 1

    def failed(self, reason: str, began: int) -> None:
        """An attempt that began when `changes` was `began` failed."""
        if began != self.changes:
            return
        self.reason = reason
        if self.up is False:
            return
        log.warning(self._fails, extra=fields(address=self.address, reason=reason, retry_seconds=PROBE_SECONDS))
        self.up = False
        self.changes += 1
