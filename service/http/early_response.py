"""The end of a connection whose caller is answered before the whole body has arrived."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.connection import CLOSE, CONNECTION, Connection


class EarlyResponseCloser:
    """Says `Connection: close` where more of a body may come than is worth reading, and closes when that is read.

    What still arrives is neither parsed nor taken for a request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        connection: Connection | None = scope.get("extensions", {}).get(CONNECTION)
        if connection is None or not connection.expects_much():
            await self._app(scope, receive, send)
            return
        closes = False

        async def closing(message: Message) -> None:
            nonlocal closes
            if message["type"] == "http.response.start":
                closes = connection.expects_much()
                if closes:
                    message["headers"] = [*message.get("headers", ()), CLOSE]
            elif closes:  # the server would close at once, and the client might lose the answer
                message = {**message, "more_body": True}
            await send(message)

        await self._app(scope, receive, closing)
        if closes:
            await connection.linger()
            await send({"type": "http.response.body"})
