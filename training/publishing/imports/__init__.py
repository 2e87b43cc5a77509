"""Models trained elsewhere, as model folders: `python -m training import`."""
