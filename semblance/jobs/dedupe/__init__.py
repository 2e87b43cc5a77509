"""The rows of a file that say the same; imports `tables`, `client` and `jobs.batch`.

From the bottom up: `texts` collects the distinct texts of a file; `vectors` embeds them by a batch, which can be
resumed; `neighbours` finds the nearest of each; `reading` asks a model that reads both texts of a pair;
`core.duplicates` decides; `dedupe` writes the answers, `review` the pairs for people.
"""
