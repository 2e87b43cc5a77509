"""As the tests of the training half: one thread, the same property examples every time, no log left to other tests."""

from tests.training.conftest import root_logger_as_it_was  # noqa: F401 - a fixture
