"""Files in the data folder to pairs or sentences: one table of pairs, and a reader for each other form."""
