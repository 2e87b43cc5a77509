"""Recipes of the papers' tables and ablations; importing this makes them known beside those of training."""

from papers.recipes import gran, gran_supervised, malstm, mgim, paragram_phrase, pwim
from training.recipes import register

register(malstm, paragram_phrase, gran, gran_supervised, pwim, mgim)
