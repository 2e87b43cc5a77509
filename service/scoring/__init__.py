"""Texts in, calibrated answers out."""
