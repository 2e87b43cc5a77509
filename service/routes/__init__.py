"""Routes: our own and those for clients of OpenAI, Cohere and TEI. Imports `service.py` and what is below it."""
