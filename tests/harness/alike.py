"""Equality of answers."""

import dataclasses
from typing import Any

import numpy as np


def assert_alike(found: Any, expected: Any) -> None:
    """Equal, numbers to 1e-6, relative beyond 1: what is beside a pair in a batch may move its last digit."""
    if dataclasses.is_dataclass(expected) and not isinstance(expected, type):
        found, expected = _fields(found), _fields(expected)
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            assert_alike(found[name], expected[name])
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    elif isinstance(expected, float | np.ndarray):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    else:
        assert found == expected


def _fields(answer: Any) -> dict[str, Any]:
    return {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
