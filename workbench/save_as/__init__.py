"""Our models for other libraries: `python -m workbench save-as`."""
