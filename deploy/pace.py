"""How fast services answer one pair: `pace.py SECONDS SENDERS API API`, in turns, each on kept connections.

Prints requests a second and latency of each, and the first one's rate as a ratio to the second one's. A failed request
is a line and exit code 1. Nothing but the standard library.
"""

import json
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException
from statistics import quantiles
from urllib.parse import urlsplit

from probe import PAIR

ROUNDS = 3
HEADERS = {"Content-Type": "application/json"}


def paced(api: str, seconds: float, senders: int) -> list[float]:
    """Seconds of each request within a time, from so many connections.

    Raises:
        RuntimeError: a request failed.
    """
    took: list[float] = []
    failed: list[str] = []
    ends = time.monotonic() + seconds

    def send(number: int) -> None:
        connection = HTTPConnection(urlsplit(api).netloc, timeout=10)
        turn = 0
        try:
            while time.monotonic() < ends:
                turn += 1
                body = json.dumps({"pairs": [{**PAIR, "a": f"{PAIR['a']} {number} {turn}"}]})
                began = time.perf_counter()
                connection.request("POST", "/similarity", body, HEADERS)
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    failed.append(f"status {answer.status}")
                took.append(time.perf_counter() - began)
        except (OSError, HTTPException) as error:
            failed.append(repr(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise RuntimeError(f"{api}: {len(failed)} failed, the first: {failed[0]}")
    return took


def main(seconds: str, senders: str, *apis: str) -> int:
    """Ask the services in turns, so that what else the machine does is shared between them."""
    took: dict[str, list[float]] = {api: [] for api in apis}
    try:
        for _ in range(ROUNDS):
            for api in apis:
                took[api] += paced(api, float(seconds) / ROUNDS, int(senders))
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    rates = [len(times) / float(seconds) for times in took.values()]
    for (api, times), rate in zip(took.items(), rates, strict=True):
        parts = quantiles(times, n=100)
        sys.stdout.write(
            f"{api}: {rate:.0f} requests/s, median {parts[49] * 1e3:.1f} ms, p99 {parts[98] * 1e3:.1f} ms\n"
        )
    sys.stdout.write(f"the first to the second: {rates[0] / rates[1]:.2f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
