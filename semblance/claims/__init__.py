"""`semblance claims` holds the claims of a file against documents, and writes what they say and where."""
