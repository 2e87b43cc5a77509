"""Sentences in English and in other languages."""

from pathlib import Path

SENTENCES = Path(__file__).parents[1] / "service/scoring/language"
OTHER = [line.split("\t") for line in (SENTENCES / "other.tsv").read_text(encoding="utf-8").splitlines()]
ENGLISH_TEXTS = (SENTENCES / "english.txt").read_text(encoding="utf-8").splitlines()
