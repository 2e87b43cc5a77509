"""Parts that several architectures share: layers, cells, heads."""
