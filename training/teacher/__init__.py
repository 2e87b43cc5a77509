"""The sentence-transformers teacher: its encodings, its fine-tuning, and the training data made with it."""
