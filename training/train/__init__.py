"""A recipe carried out: its data, its model, the training loop, the finished run on disk. Imports recipes and below."""
