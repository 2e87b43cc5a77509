"""One reader a corpus: files in the data folder to pairs or sentences."""
