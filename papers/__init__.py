"""The five papers' tables: what they print, what was measured, RESULTS.md. May import core and training."""
