"""The service in this process, as the tests of service/ have it."""

from tests.harness.exports import exports_are_kept, faster_exports  # noqa: F401 - a fixture
from tests.service.conftest import anyio_backend, models, serve  # noqa: F401 - fixtures

faster_exports()
