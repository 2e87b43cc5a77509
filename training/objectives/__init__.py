"""Objectives, one file each: batches, loss and development score of the training loop; and their common parts."""
