"""A small load balancer with load of its own: `balance.py STOP API...` goes on until there is a file STOP.

It asks each service for its readiness, as balancers do, and sends requests in turn to those that are ready: each on a
new connection, none a second time. Exit code 1, with a line for each kind of failure, unless all were answered and
every service answered some.
"""

import sys
import threading
import time
from collections import Counter
from http.client import HTTPException
from itertools import count
from pathlib import Path
from urllib.error import HTTPError

from probe import WrongAnswer, ask, similarity

SENDERS = 2
SECONDS_BETWEEN_CHECKS = 0.2
SECONDS_BETWEEN_REQUESTS = 0.01


class Balancer:
    """Counts what was answered by whom, and what failed."""

    def __init__(self, stop: Path, apis: list[str]) -> None:
        self.answered: Counter[str] = Counter(dict.fromkeys(apis, 0))
        self.failed: Counter[str] = Counter()
        self._stop = stop
        self._unready: dict[str, str] = dict.fromkeys(apis, "not asked yet")  # why; empty when it is ready
        self._turns = count()

    def run(self) -> None:
        """Until the file is there; none fails because the first service was not asked yet."""
        self._look()
        threads = [threading.Thread(target=self._send) for _ in range(SENDERS)]
        for thread in threads:
            thread.start()
        while not self._stop.exists():
            time.sleep(SECONDS_BETWEEN_CHECKS)
            self._look()
        for thread in threads:
            thread.join()

    def _look(self) -> None:
        for api in self._unready:
            try:
                ask(f"{api}/health/ready")
            except (OSError, HTTPException) as error:
                said = error.read().decode() if isinstance(error, HTTPError) else ""
                self._unready[api] = f"{error!r} {said}".strip()
            else:
                self._unready[api] = ""

    def _send(self) -> None:
        while not self._stop.exists():
            turn = next(self._turns)
            ready = [api for api, reason in self._unready.items() if not reason]
            if ready:
                self._ask(ready[turn % len(ready)], f"Sentence {turn % 100} of those sent meanwhile")
            else:
                self.failed[f"no service was ready: {self._unready}"] += 1
            time.sleep(SECONDS_BETWEEN_REQUESTS)

    def _ask(self, api: str, sentence: str) -> None:
        try:
            similarity(api, sentence)
        except (WrongAnswer, OSError, HTTPException) as error:
            self.failed[f"{api}: {error!r}"] += 1
        else:
            self.answered[api] += 1


def main(stop: str, *apis: str) -> int:
    """Run, and say what came of it."""
    balancer = Balancer(Path(stop), list(apis))
    balancer.run()
    sys.stdout.write(f"answered: {dict(balancer.answered)}, failed: {balancer.failed.total()}\n")
    for failure, times in balancer.failed.items():
        sys.stderr.write(f"{times} x {failure}\n")
    return 0 if all(balancer.answered.values()) and not balancer.failed else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
