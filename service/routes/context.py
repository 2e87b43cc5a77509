"""The context of a request, as endpoints get it."""

from typing import Annotated

from fastapi import Depends, Request

from service.engine.context import RequestContext
from service.routes.operation import state_of


def request_context(request: Request) -> RequestContext:
    """The context of a request that asks a model, as the middleware made it."""
    context = state_of(request.scope).context
    assert context is not None, "only routes that ask a model have one"
    return context


Context = Annotated[RequestContext, Depends(request_context)]
