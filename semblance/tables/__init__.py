"""Files in and out, row by row: imports `core` alone.

From the bottom up: `rows` has the types; `decoding` reads text; `json_lines` and `delimited` read JSON Lines, CSV and
TSV, `outputs` writes them, `parquet` does both for Parquet; `formats` selects one by suffix; `labelled_pairs` reads a
user's pairs with their labels, `documents` texts, Markdown, HTML and PDF.
"""
