"""Processes: the supervisor of several workers, one worker, and what the two say to each other."""
