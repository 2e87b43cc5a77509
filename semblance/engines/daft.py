"""Daft: a scorer as an expression of columns, called with Arrow."""

import os
from typing import Any

from semblance.batch.parquet import TYPES
from semblance.columns import Scorer
from semblance.engines.arrow import struct_of
from semblance.extras import needs

os.environ.setdefault("DO_NOT_TRACK", "1")  # no report to its maker
with needs("Daft", extra="daft"):
    import daft
    import pyarrow as pa


def as_expression(scorer: Scorer) -> Any:
    """A function of columns that gives a struct: `as_expression(scorer)(col("a"), col("b"))["score"]`."""

    def answer(*columns: daft.Series) -> daft.Series:
        texts = [column.to_pylist() for column in columns]
        rows = min(map(len, texts)) and max(map(len, texts))  # a literal comes as one row
        found = scorer(*(each * rows if len(each) == 1 else each for each in texts))
        return daft.Series.from_arrow(struct_of(found, scorer.kinds))

    gives = pa.struct([(name, TYPES[kind]) for name, kind in scorer.kinds.items()])
    return daft.func.batch(return_dtype=daft.DataType.from_arrow_type(gives))(answer)
