"""A published model tuned on labelled pairs of one's own, or on a teacher's ratings of one's own texts."""
