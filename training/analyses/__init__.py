"""Analyses with plots, one file per question; `python -m training analyse <name>` carries one out (see `cli`)."""
