"""Corpora and word tables: files in the data folder -> lists of `Pair` or of sentences. Imports errors and names alone.

Every reader checks the file it reads (header, columns, ranges, published counts) and raises
`training.data.files.CorpusError` with one line that says which file, which line and what was expected.
"""
