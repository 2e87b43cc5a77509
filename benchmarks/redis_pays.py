"""What an answer whose vectors are in Redis costs the service, beside one that it computes: CPU of its process.

    python -m benchmarks.redis_pays      # about two minutes

The same pairs, one in a request over one connection, are asked of a service that computes them, of one that also puts
their vectors into Redis, and of one, started anew, that finds them there.
"""

import json
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from statistics import median

from benchmarks.report import RESULTS, figures, machine, write
from benchmarks.sentences import sentences
from benchmarks.servers import RedisServer, Service

MODELS = ("avg-paraphrase", "minilm-small", "minilm", "pwim-sick")
PAIRS, ROUNDS = 200, 3


def milliseconds(service: Service, model: str, texts: Sequence[str]) -> float:
    """CPU of a request of one pair."""
    connection = HTTPConnection("127.0.0.1", service.port)
    before = service.cpu_seconds()
    for a, b in zip(texts[::2], texts[1::2], strict=True):
        body = json.dumps({"model": model, "pairs": [{"a": a, "b": b}]})
        connection.request("POST", "/similarity", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(answer.read().decode())
        answer.read()
    passed = service.cpu_seconds() - before
    connection.close()
    return 2000 * passed / len(texts)


def of_a_service(texts: Sequence[str], **settings: object) -> dict[str, float]:
    """Of each model, in a service with these settings; what is slow to begin with is done before."""
    with Service(None, preload=",".join(MODELS), **settings) as service:
        for model in MODELS:
            milliseconds(service, model, sentences(20, 0))
        costs = {model: milliseconds(service, model, texts) for model in MODELS}
        time.sleep(1)  # vectors are written after the answers
        return costs


def main() -> None:
    """Measure, print a table, and write the dated results."""
    rounds: list[list[dict[str, float]]] = []
    for number in range(1, ROUNDS + 1):
        texts = sentences(2 * PAIRS, number)
        with RedisServer() as store:
            with_redis = {"redis_url": store.url, "cache": "redis"}
            rounds.append([of_a_service(texts, cache="memory"), *(of_a_service(texts, **with_redis) for _ in range(2))])
    rows = []
    for model in MODELS:
        computed, put, found = (median(of[model] for of in column) for column in zip(*rounds, strict=True))
        ratios = {"put, x computed": put / computed, "found, x computed": found / computed}
        rows.append({"model": model, "computed, ms": computed, "also put, ms": put, "found, ms": found, **ratios})
    about = (
        f"`python -m benchmarks.redis_pays`: CPU of the service's process for a request of one pair of 10 to 20 words, "
        f"{PAIRS} of them, medians over {ROUNDS} rounds. {machine('redis', 'onnxruntime')}."
    )
    write(RESULTS, "redis-pays", "What an answer from Redis costs", about, [figures(rows)], {"rounds": rounds})


if __name__ == "__main__":
    main()
