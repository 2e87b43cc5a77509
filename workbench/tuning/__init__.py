"""A published model tuned on labelled pairs of one's own."""
