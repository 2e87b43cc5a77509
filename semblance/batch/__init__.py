"""`semblance batch` reads the rows of a file, asks about each, writes them with their answers, and can be resumed.

From the bottom up: `rows` has the types; `sources` and `outputs` read and write JSON Lines and CSV, `parquet` does both
for Parquet; `formats` selects one by suffix; `tasks` makes requests from rows; `journal` records progress; `job` runs
the batch; `command` is the command line.
"""
