import json

import pytest

from semblance import errors
from semblance.errors import request_failed
from semblance.exits import exit_code


def body(**detail: object) -> bytes:
    common = {"code": "empty_text", "message": "no text", "field": None, "limit": None, "request_id": "r1"}
    return json.dumps({"error": common | detail}).encode()


def test_an_error_carries_all_that_the_body_says() -> None:
    error = request_failed(413, body(code="too_large", message="too long", field="pairs.3.a", limit=9), None, None)
    assert type(error) is errors.TooLarge
    assert (error.status, error.code, error.message) == (413, "too_large", "too long")
    assert (error.field, error.index, error.limit, error.request_id) == ("pairs.3.a", 3, 9, "r1")
    assert str(error) == "pairs.3.a: too long (too_large, request r1)"


@pytest.mark.parametrize(
    "page", [b"<html>Bad Gateway</html>", b"", b"[]", b'{"error": "no"}', b'{"error": {}}', b"\xff"]
)
def test_what_another_program_answers_is_an_error_too(page: bytes) -> None:
    error = request_failed(502, page, "from-header", None)
    assert type(error) is errors.ServiceFailed
    assert str(error) == "Bad Gateway (http_502, request from-header)"


def test_a_field_counts_over_all_that_was_given() -> None:
    message = "pairs.1.b: Input should be a valid string"
    moved = request_failed(422, body(message=message, field="pairs.1.b"), None, 2.0).at(range(256, 300), "pairs")
    assert moved.field == "pairs.257.b"
    assert moved.message == "pairs.257.b: Input should be a valid string"
    assert (moved.status, moved.code, moved.request_id, moved.retry_after) == (422, "empty_text", "r1", 2.0)
    assert str(moved).count("pairs.257.b") == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (request_failed(422, body(), None, None), 1),
        (errors.UnexpectedAnswer("x"), 1),
        (errors.BatchError("x"), 2),
        (errors.MissingExtra("x", "y", "z", "pip install z"), 2),
        (errors.TimedOut("x"), 3),
        (errors.CannotStart("x"), 3),
    ],
)
def test_exit_codes(error: errors.SemblanceError, code: int) -> None:
    assert exit_code(error) == code
