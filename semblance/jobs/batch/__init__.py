"""Asks about every row of a file and writes the answers beside them; imports `tables` and `client`.

From the bottom up: `tasks` makes requests from rows; `journal` records progress; `job` runs the batch.
"""
