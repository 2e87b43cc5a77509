"""`semblance dedupe` and `semblance search`: near-duplicates in a file, and the nearest texts of a file to queries.

From the bottom up: `texts` collects the distinct texts of a file; `vectors` embeds them with `semblance.batch`, which
can be resumed; `neighbours` finds near ones with faiss, exactly or approximately; `clusters` joins them; `second`
asks a model that reads both texts; `dedupe` and
`search` write the answers; `command` is the command line.
"""
