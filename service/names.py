"""Model names that programs written for other services send by default."""

# With SEMBLANCE_COMMON_NAMES the default model of a route answers to them (docs/dialects.md).
COMMON_NAMES = frozenset(
    {
        "text-embedding-3-large",
        "text-embedding-3-small",
        "text-embedding-ada-002",
        "embed-english-light-v3.0",
        "embed-english-v3.0",
        "embed-multilingual-v3.0",
        "embed-v4.0",
        "rerank-english-v3.0",
        "rerank-multilingual-v3.0",
        "rerank-v3.5",
        "jina-embeddings-v3",
        "jina-reranker-v2-base-multilingual",
        "BAAI/bge-base-en-v1.5",
        "BAAI/bge-reranker-base",
        "BAAI/bge-small-en-v1.5",
        "facebook/bart-large-mnli",
        "sentence-transformers/all-MiniLM-L6-v2",
    }
)
