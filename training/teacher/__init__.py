"""The sentence-transformers teacher: its encodings, its fine-tuning, and the data made with it. Imports what objectives may."""
