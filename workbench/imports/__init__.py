"""Models trained elsewhere, as model folders: `python -m workbench import`."""
