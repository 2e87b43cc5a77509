"""The sentence-transformers teacher: its encodings and fine-tuning, data made with it. Imports objectives and below."""
