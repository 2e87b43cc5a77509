"""The names of uvicorn that it does not document and that `http/connection.py` and `http/server.py` need."""

import inspect

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

PROTOCOL = (
    "_start_asgi_task _unset_keepalive_if_required connection_lost connection_made data_received on_body on_header "
    "on_headers_complete on_message_begin on_message_complete on_response_complete pause_writing resume_writing "
    "send_400_response timeout_keep_alive_handler"
)
CONNECTION = "app_state cycle flow headers loop parser pipeline scope server_state timeout_keep_alive transport url"
CYCLE = (
    "body default_headers disconnected flow keep_alive message_event more_body on_response response_complete "
    "response_started scope transport waiting_for_100_continue"
)


def test_uvicorn_has_the_names_that_the_connection_needs() -> None:
    assert [name for name in PROTOCOL.split() if not hasattr(HttpToolsProtocol, name)] == []
    made = inspect.getsource(RequestResponseCycle.__init__)
    assert [name for name in CYCLE.split() if f"self.{name} =" not in made and f"self.{name}:" not in made] == []
    made = inspect.getsource(HttpToolsProtocol)
    assert [name for name in CONNECTION.split() if f"self.{name} =" not in made and f"self.{name}:" not in made] == []


def test_uvicorn_has_the_names_that_the_server_needs() -> None:
    names = "_log_started_message handle_exit on_tick run shutdown startup"
    assert [name for name in names.split() if not hasattr(uvicorn.Server, name)] == []
    assert {"connections", "default_headers", "tasks"} <= set(vars(ServerState()))
