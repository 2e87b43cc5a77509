"""Objectives, one file each: batches, loss and development score of the training loop. Imports data and models."""
