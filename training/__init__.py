"""Offline half of Semblance: corpora in, trained and exported models out. The only place torch lives."""
