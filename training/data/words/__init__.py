"""Word tables: vectors of words, where they come from, and how a published model keeps them."""
