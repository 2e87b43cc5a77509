"""Which corpora there are, fetching them, and the inventory of the data folder."""
