"""Spark: a scorer as a column expression, by `pandas_udf`; `predict_batch_udf` has no booleans and no ragged lists."""

from collections.abc import Mapping
from typing import Any

from semblance.batch.rows import Kind
from semblance.columns import Scorer
from semblance.extras import needs

with needs("Spark", extra="spark"):
    import pandas as pd
    from pyspark.sql import types as t
    from pyspark.sql.functions import pandas_udf

_TYPES: Mapping[Kind, Any] = {
    "number": t.DoubleType(),
    "text": t.StringType(),
    "flag": t.BooleanType(),
    "places": t.ArrayType(t.LongType()),
    "numbers": t.ArrayType(t.DoubleType()),
    "vector": t.ArrayType(t.FloatType()),
}


def as_column(scorer: Scorer) -> Any:
    """A function of columns that gives a struct: `as_column(scorer)("a", "b")["score"]`.

    Each Python worker opens the model once. A call has as many rows as spark.sql.execution.arrow.maxRecordsPerBatch.
    """

    def answer(*columns: pd.Series) -> pd.DataFrame:
        found = scorer(*columns)
        return pd.DataFrame({name: list(column) for name, column in found.items()})

    fields = [t.StructField(name, _TYPES[kind]) for name, kind in scorer.kinds.items()]
    return pandas_udf(answer, returnType=t.StructType(fields))
