"""One thread; exports once; no log left to other tests."""

import torch

from tests.harness.console_log import root_logger_as_it_was  # noqa: F401 (used by each test)
from tests.harness.exports import exports_are_kept, faster_exports  # noqa: F401 (used by each test)

torch.set_num_threads(1)
faster_exports()
