"""Whole files: rows in, the same rows with answers out, resumed where it was interrupted.

`sources` reads JSON Lines and CSV, `stores` writes them, `parquet` does both for Parquet; `tasks` asks; `checkpoint`
remembers how far it got; `job` puts them together.
"""
