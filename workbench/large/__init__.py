"""The large models, whose weights do not lie in the repository: `python -m workbench large`."""
