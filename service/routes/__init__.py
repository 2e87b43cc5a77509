"""Routes, and the JSON of their requests and answers; other services' formats are in `dialects/`."""
