"""What takes a whole file or many requests: imports `tables` and `client`, and nothing of a command line.

`batch` asks about every row and can be resumed; `dedupe` and `threshold` ask with it; `faq` chooses for an FAQ;
`claims` holds claims against documents; `columns` makes a model a function of columns for Ray, Spark and DuckDB.
"""
