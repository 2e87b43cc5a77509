"""Corpora: files in the data folder -> lists of `Pair` or of sentences, by one table of pairs or readers of their own.

Every reader checks the file it reads (header, columns, ranges, published counts) and raises
`training.corpora.files.CorpusError` with one line that says which file, which line and what was expected.
"""
