"""A good request of every dialect, and a model that is slow."""

import time

from tests.harness.service import Client, expect

TEI, COHERE, OPENAI = {"error", "error_type"}, {"id", "message"}, {"error"}
JINA = OPENAI | {"message", "detail"}
OURS, OPEN_INFERENCE = OPENAI, OPENAI
# A good body for every request of every family, and the fields of its errors.
REQUESTS = {
    "own similarity": ("/similarity", {"pairs": [{"a": "a man", "b": "a dog"}]}, OURS),
    "own embed": ("/embed", {"sentences": ["a man"]}, OURS),
    "TEI similarity": ("/similarity", {"inputs": {"source_sentence": "a man", "sentences": ["a dog"]}}, TEI),
    "TEI embed": ("/embed", {"inputs": "a man"}, TEI),
    "TEI predict": ("/predict", {"inputs": ["a man", "a dog"], "model": "avg-sick"}, TEI),
    "TEI rerank": ("/rerank", {"query": "a man", "texts": ["a dog"]}, TEI),
    "TEI bare URL": ("/", {"inputs": "a man"}, TEI),
    "Jina rerank": ("/rerank", {"query": "a man", "documents": ["a dog"]}, JINA),
    "LiteLLM infinity": ("/infinity/rerank", {"query": "a man", "documents": ["a dog"]}, JINA),
    "Cohere v1": ("/v1/rerank", {"query": "a man", "documents": ["a dog"]}, JINA | COHERE),
    "Cohere v2": ("/v2/rerank", {"query": "a man", "documents": ["a dog"]}, COHERE),
    "Cohere v1 embed": ("/v1/embed", {"texts": ["a man"]}, COHERE),
    "Cohere v2 embed": ("/v2/embed", {"texts": ["a man"]}, COHERE),
    "Infinity embedding": ("/embeddings", {"input": ["a man"]}, OPENAI),
    "Cohere tokenize": ("/v1/tokenize", {"text": "a man"}, COHERE),
    "TEI tokenize": ("/tokenize", {"inputs": "a man"}, TEI),
    "vLLM pooling": ("/pooling", {"input": "a man"}, JINA),
    "LiteLLM infinity embedding": ("/infinity/embeddings", {"input": ["a man"]}, OPENAI),
    "vLLM score": ("/score", {"text_1": "a man", "text_2": "a dog"}, JINA),
    "vLLM v1 score": ("/v1/score", {"text_1": "a man", "text_2": "a dog"}, JINA),
    "OpenAI": ("/v1/embeddings", {"input": "a man"}, OPENAI),
}


def slow(client: Client, seconds: float, name: str, expected: float = 1.0) -> None:
    """Make a model's encoder slow, and expected to take so long."""
    scorer = client.app.service.registry[name].scorer
    graph, fast = scorer.graphs["encoder.onnx"], scorer.graphs["encoder.onnx"].run
    graph.run = lambda feeds: (time.sleep(seconds), fast(feeds))[1]
    expect(scorer, expected)
