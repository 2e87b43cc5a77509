"""DuckDB: a scorer as a function of SQL, called with Arrow columns."""

from collections.abc import Callable
from typing import Any

from semblance.batch.tasks import DEFAULT_COLUMNS
from semblance.columns import Scorer
from semblance.engines.arrow import struct_of
from semblance.extras import needs

with needs("DuckDB", extra="duckdb"):
    import duckdb

_TYPES = {
    "number": "DOUBLE",
    "text": "VARCHAR",
    "flag": "BOOLEAN",
    "places": "BIGINT[]",
    "numbers": "DOUBLE[]",
    "vector": "FLOAT[]",
}


def register(connection: Any, scorer: Scorer, name: str) -> None:
    """Let `SELECT name(a, b).score` ask the scorer; the function gives a struct of its columns.

    Args:
        connection: of DuckDB.
        scorer: with `nulls=True` a row without an answer is NULL, otherwise it ends the query.
        name: of the function.
    """

    def answer(*columns: Any) -> Any:
        return struct_of(scorer(*(column.to_pylist() for column in columns)), scorer.kinds)

    # DuckDB counts the parameters of what it gets.
    forms: dict[int, Callable[..., Any]] = {1: lambda texts: answer(texts), 2: lambda a, b: answer(a, b)}
    reads = ["VARCHAR[]" if column == "candidates" else "VARCHAR" for column in DEFAULT_COLUMNS[scorer.task]]
    gives = ", ".join(f'"{column}" {_TYPES[kind]}' for column, kind in scorer.kinds.items())
    connection.create_function(
        name,
        forms[len(reads)],
        [duckdb.sqltype(each) for each in reads],
        duckdb.sqltype(f"STRUCT({gives})"),
        type="arrow",
        null_handling="special",
    )
