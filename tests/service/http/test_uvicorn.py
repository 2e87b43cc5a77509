"""The names of uvicorn that it does not document and that `http/connection.py` and `http/server.py` need.

No other file uses uvicorn.
"""

import inspect
import re
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

PROTOCOL = (
    "_start_asgi_task _unset_keepalive_if_required connection_lost connection_made data_received on_body on_header "
    "on_headers_complete on_message_begin on_message_complete on_response_complete pause_writing resume_writing "
    "send_400_response timeout_keep_alive_handler"
)
CONNECTION = "app_state cycle flow headers loop parser pipeline scope server_state timeout_keep_alive transport url"
CYCLE = "body disconnected keep_alive message_event more_body response_complete scope"
SERVICE = Path(__file__).parents[3] / "service"


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


def test_no_other_file_knows_uvicorn() -> None:
    files = {path.relative_to(SERVICE).as_posix(): path.read_text() for path in SERVICE.rglob("*.py")}
    using = {name for name, text in files.items() if re.search(r"^\s*(?:import|from) uvicorn", text, re.MULTILINE)}
    assert using == {"http/connection.py", "http/server.py"}
