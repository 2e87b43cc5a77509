"""The sentence-transformers teacher: its encodings, its fine-tuning, data made with it. Imports objectives and below."""
