"""How long the tests that make up their own examples look.

`TEST_EFFORT=20` gives them twenty times the examples, and other ones each time, where by themselves they look at the
same ones every time. pytest's `--timeout` must then grow as well.
"""

import os

from hypothesis import settings

EFFORT = int(os.environ.get("TEST_EFFORT", "1"))


def looking(examples: int) -> settings:
    """What a property is decorated with, to be tried on so many examples."""
    return settings(
        max_examples=examples * EFFORT, derandomize=EFFORT == 1, deadline=None, database=None, print_blob=EFFORT > 1
    )
