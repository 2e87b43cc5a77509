"""Our models for other libraries: `python -m training save-as`."""
