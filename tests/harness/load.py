"""A steady load that forgives nothing: every request must be answered, on the connection it was sent on.

No client library stands between: those try again by themselves, which is what hides a lost request.
"""

import http.client
import json
import random
import threading
import time
from collections import Counter
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

CALLERS = 8  # threads, each with a connection of its own
LONGEST_PAUSE = 0.1  # seconds between two requests of one caller


class Load:
    """`with Load(url, "/similarity", body) as load:` asks all the time, over connections that are kept."""

    def __init__(self, url: str, path: str, body: object) -> None:
        """Prepare; nothing is asked yet.

        Args:
            url: of the service.
            path: of the route.
            body: of every request, as JSON.
        """
        self._address = urlsplit(url)
        self._path = path
        self._body = json.dumps(body).encode()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(random.Random(seed),), daemon=True) for seed in range(CALLERS)
        ]
        self._lock = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def go_on(self, seconds: float) -> None:
        """Let the load run for so many seconds."""
        time.sleep(seconds)

    def _ask(self, pauses: random.Random) -> None:
        connection: http.client.HTTPConnection | None = None
        while not self._stop.is_set():
            status, failure = 0, ""
            try:
                if connection is None:
                    connection = http.client.HTTPConnection(self._address.netloc, timeout=240)
                connection.request("POST", self._path, self._body, {"content-type": "application/json"})
                response = connection.getresponse()
                response.read()
                status = response.status
                if response.will_close:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException) as error:
                failure = f"{type(error).__name__}: {error}"
                if connection is not None:
                    connection.close()
                connection = None
            with self._lock:
                if failure:
                    self.failures.append(failure)
                else:
                    self.statuses[status] += 1
            self._stop.wait(pauses.uniform(0, LONGEST_PAUSE))
        if connection is not None:
            connection.close()
