"""Property tests: the same examples every time, and no deadline, for a busy machine is not a failure."""

from hypothesis import settings

settings.register_profile("semblance", derandomize=True, deadline=None, database=None)
settings.load_profile("semblance")
