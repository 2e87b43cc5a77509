"""Analyses with plots, one file each; `python -m training analyse <name>` runs one (see `cli`)."""
