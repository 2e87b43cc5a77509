"""All that the service can be asked: our own requests, and those of other services' clients (docs/dialects.md).

Each module is one dialect, with its requests, answers and errors. They share `scoring`, which uses the models.
"""

from service.routes.dialects import cohere, jina, openai, operations, own, tei
from service.routes.dialects.scoring import DialectContext
from service.routes.operation import Operation
from service.routes.route import MiddlewareFactory, Table
from service.service import Service

# On a shared path the first operation answers bodies that match none.
DIALECTS = (own, operations, jina, cohere, openai, tei)
# The dialects of paths that no route has.
_PREFIXES = {"/v1": openai.OPENAI, "/info": tei.TEI}


def table_of(service: Service, around: MiddlewareFactory, *more: Operation) -> Table:
    """The routes of all dialects, and of `more`.

    Raises:
        ModelError: an alias in the settings is a model's own name, or names no model.
    """
    scoring = DialectContext(service)
    found = [operation for dialect in DIALECTS for operation in dialect.operations(scoring)]
    return Table(
        (*found, *more), service, examples=scoring.named, prefixes=_PREFIXES, otherwise=own.OPERATIONS, around=around
    )
