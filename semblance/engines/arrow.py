"""A scorer's answers as Arrow, with nulls."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from semblance.batch.parquet import TYPES
from semblance.batch.rows import Kind
from semblance.columns import Column
from semblance.extras import needs

with needs("Arrow", extra="parquet"):
    import pyarrow as pa


def struct_of(answer: Mapping[str, Column], kinds: Mapping[str, Kind]) -> Any:
    """A StructArray [n] of an answer; a row whose first column is NaN or None is null."""
    arrays = [pa.array(list(answer[name]), TYPES[kind], from_pandas=True) for name, kind in kinds.items()]
    first = answer[next(iter(kinds))]
    missing = [value is None if first.dtype == object else bool(np.isnan(value).any()) for value in first]
    return pa.StructArray.from_arrays(arrays, names=list(kinds), mask=pa.array(missing, pa.bool_()))
