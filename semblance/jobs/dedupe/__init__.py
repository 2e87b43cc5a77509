"""The rows of a file that say the same; imports `tables`, `client` and `jobs.batch`.

From the bottom up: `session` holds the options and asks the models; `corpus` collects the distinct texts of a file and
embeds them by a batch, which can be resumed; `neighbours` finds the nearest of each; `core.duplicates` decides;
`review` reads and writes pairs for people; `dedupe` writes the output.
"""
