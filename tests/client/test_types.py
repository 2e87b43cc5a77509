"""The client's answers against the service's own types: a field added there must be added here."""

import dataclasses
from typing import NotRequired, get_args, get_origin, get_type_hints

import pytest

from semblance import types
from service import schemas

RENAMED = {
    "Similarities": "SimilarityResponse",
    "Ranking": "RankResponse",
    "Entailments": "EntailmentResponse",
    "Embeddings": "EmbedResponse",
    "Claims": "ClaimsResponse",
    "Labels": "ClassifyResponse",
    "Explanation": "ExplainResponse",
    "Models": "ModelsResponse",
}
OURS = [name for name, value in vars(types).items() if dataclasses.is_dataclass(value)]
PAIRS = [(name, RENAMED.get(name, name)) for name in OURS]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_every_field_of_an_answer_is_there(ours: str, theirs: str) -> None:
    schema = get_type_hints(getattr(schemas, theirs), include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(getattr(types, ours))}
    assert fields.keys() == schema.keys()
    optional = {name for name, hint in schema.items() if get_origin(hint) is NotRequired}
    # Younger than the first services, whose answers are still read.
    younger = {"scale", "domain", "main", "open", "languages", "confidence"}
    assert {name for name, field in fields.items() if field.default is None} - younger == optional - younger


@pytest.mark.parametrize(
    ("kind", "field"),
    [("EntailmentResult", "label"), ("ClaimResult", "label"), ("Readiness", "status"), ("DomainInfo", "elsewhere")],
)
def test_closed_sets_are_the_same(kind: str, field: str) -> None:
    ours, theirs = (get_args(get_type_hints(getattr(module, kind))[field]) for module in (types, schemas))
    assert len(ours) >= 3
    assert ours == theirs
