"""Spark: a scorer as a column expression, by `predict_batch_udf`."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from semblance.batch.rows import Kind
from semblance.columns import Column, Scorer
from semblance.extras import needs

with needs("Spark", extra="spark"):
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql import types as t

ROWS = 1024  # of one call
_TYPES: Mapping[Kind, Any] = {
    "number": t.DoubleType(),
    "text": t.StringType(),
    "flag": t.BooleanType(),
    "places": t.ArrayType(t.LongType()),
    "numbers": t.ArrayType(t.DoubleType()),
    "vector": t.ArrayType(t.FloatType()),
}


def as_column(scorer: Scorer, rows: int = ROWS) -> Any:
    """A function of columns that gives a struct: `as_column(scorer)("a", "b")["score"]`.

    Each Python worker opens the model once. `rows` are those of one call.
    """
    fields = [t.StructField(name, _TYPES[kind]) for name, kind in scorer.kinds.items()]
    return predict_batch_udf(partial(_made, scorer), return_type=t.StructType(fields), batch_size=rows)


def _made(scorer: Scorer) -> Callable[..., dict[str, Column]]:
    """What a worker calls."""
    return scorer
