"""Routes: our own and those for other services' clients. Imports `service.py` and what is below it."""
