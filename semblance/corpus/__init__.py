"""`semblance dedupe` and `semblance search`: near-duplicates in a file, and the nearest texts of a file to queries.

From the bottom up: `texts` collects the distinct texts of a file; `vectors` embeds them with `semblance.batch`, which
can be resumed; `neighbours` finds near ones with faiss, exactly or approximately; `guard` keeps apart what differs in a
fact; `reading` asks a model that reads both texts; `duplicates` judges pairs, and `groups` joins them; `dedupe` and
`search` write the answers; `command` is the command line.
"""
