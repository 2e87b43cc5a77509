"""A process that opened models ends with its own exit code: no thread of ours is left when the interpreter goes.

A daemon thread that is within ONNX Runtime at that moment ends the process by SIGABRT ("terminate called without an
active exception"), with 134 in a shell.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.process import ROOT

# Says which threads live at the very end: what is registered first is called last. Checks never rest, so that one runs
# when the process ends.
BEGIN = """
import atexit, os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
atexit.register(lambda: print("alive:", sorted(t.name for t in threading.enumerate()), flush=True))
from service.models import checks
checks.CHECK_SECONDS = 0.0
folder = sys.argv[1]
"""
ENDS = {
    "a client that nobody closes": """
from semblance import Client
client = Client.local(folder)
client.similarity([("a man", "a dog")])
""",
    "Ctrl-C": """
from semblance import Client
with Client.local(folder) as client:
    client.similarity([("a man", "a dog")])
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
""",
    "a scorer in a forked process": """
from semblance import scorer
scorer("avg-paraphrase", models_dir=folder)(["a man"], ["a dog"])
if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
""",
    "a process forked while the thread of the checks held its lock": """
checks.CHECK_SECONDS = 60.0
checker = checks.HealthChecker(lambda: ())
checker.start()
with checker._ended._cond:
    child = os.fork()
    if not child:
        checker.close()
        os._exit(0)
signal.alarm(60)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
""",
    "an asynchronous client": """
import asyncio
from semblance import AsyncClient
async def ask():
    async with AsyncClient.local(folder) as client:
        await client.similarity([("a man", "a dog")])
asyncio.run(ask())
""",
    "a command": """
from semblance.__main__ import main
sys.argv = ["semblance", "score", "a man", "a dog", "--models-dir", folder]
sys.exit(main())
""",
}
CODES = {"Ctrl-C": -signal.SIGINT}


@pytest.mark.parametrize("end", ENDS)
def test_no_thread_is_left_when_the_interpreter_ends(models: Path, end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + ENDS[end], str(models)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == CODES.get(end, 0), done.stderr
    assert done.stdout.splitlines()[-1] == "alive: ['MainThread']"
    assert "terminate" not in done.stderr
