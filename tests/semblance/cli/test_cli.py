"""The commands as the shell runs them: what they print, where, and with which exit code."""

import codecs
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from semblance import Client, Retries
from semblance.extras import version
from service.settings import Settings
from tests.harness.alike import assert_alike
from tests.harness.commands import Ran, Run
from tests.harness.service import NEEDED_SECONDS, free_port

ROOT = Path(__file__).parents[3]
EMPTY = "the text has no visible character (empty_text, "
PAIR = ("a man plays the guitar", "the man is playing a guitar .")


@pytest.fixture
def here(url: str, semblance: Run) -> Run:
    """With the tiny models, of a service: opening them for each test would take longer."""

    def run(command: str, *arguments: object) -> Ran:
        return semblance(command, *arguments, "--url", url)

    return run


def test_every_command_prints_the_services_answer_as_json(here: Run, url: str) -> None:
    def said(path: str, **body: object) -> object:
        return httpx.post(f"{url}{path}", json=body).json()

    a, b = PAIR
    candidates = ["a dog runs", "guitar"]
    ranking = said("/rank", query=a, candidates=candidates, top_k=1, model="avg-sick")
    for result in ranking["results"]:
        result["text"] = candidates[result["index"]]
    assert ranking.pop("confidence") is ranking.pop("threshold") is None  # a field without a value is left out
    for arguments, expected in [
        (("score", a, b), said("/similarity", pairs=[{"a": a, "b": b}])),
        (("entail", a, b), said("/entailment", pairs=[{"premise": a, "hypothesis": b}])),
        (("embed", a, b), said("/embed", sentences=[a, b])),
        (
            ("classify", a, b, "--label", "guitar", "--label", "dog", "--template", "the {}", "--multi-label"),
            said("/classify", text=[a, b], labels=["guitar", "dog"], template="the {}", multi_label=True),
        ),
        (("explain", a, b, "--model", "pair-sick"), said("/explain", a=a, b=b, model="pair-sick")),
        (("rank", a, *candidates, "--top-k", 1, "--model", "avg-sick"), ranking),
    ]:
        code, out, err = here(*arguments, "--json")
        assert (code, err) == (0, "")
        assert out.count("\n") == 1
        assert_alike(json.loads(out), expected)


def test_with_a_url_the_service_there_is_asked(semblance: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = httpx.get(f"{url}/models").json()["defaults"]
    monkeypatch.chdir("/")  # no models here
    assert json.loads(semblance("models", "--url", url, "--json").out)["defaults"] == expected
    monkeypatch.setenv("SEMBLANCE_URL", url)
    assert json.loads(semblance("models", "--json").out)["defaults"] == expected
    assert semblance("models", "--local").code == 3
    assert semblance("models", "--models-dir", "/nowhere").code == 3


def test_without_a_url_the_models_are_opened_here(semblance: Run, url: str, models: Path) -> None:
    found = semblance("score", *PAIR, "--models-dir", models)
    assert (found.code, found.err) == (0, "")
    assert found == semblance("score", *PAIR, "--url", url)


@pytest.mark.parametrize("option", [("--url", "http://127.0.0.1:1"), ("--api-key", "x"), ("--timeout", 5)])
@pytest.mark.parametrize("here", [("--local",), ("--models-dir", "models")])
def test_options_of_a_service_are_refused_where_models_are_opened(
    semblance: Run, here: tuple[str, ...], option: tuple[str, object]
) -> None:
    why = f"semblance: {option[0]} is for a service, not for models that are opened here\n"
    assert semblance("score", *PAIR, *here, *option) == Ran(2, "", why)


def test_candidates_from_a_file_and_from_standard_input(
    here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "a dog runs\n\n  the guitar  \n"
    (tmp_path / "lines.txt").write_text(lines)
    ran = here("rank", "guitar", "--file", tmp_path / "lines.txt", "--json")
    assert ran.err == "semblance: lines without text are left out: 1 of 3\n"
    from_file = json.loads(ran.out)
    found = [(result["index"], result["text"]) for result in from_file["results"]]
    assert found == [(1, "the guitar"), (0, "a dog runs")]
    for arguments in ((), ("--file", "-")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        assert json.loads(here("rank", "guitar", *arguments, "--json").out) == from_file


@pytest.mark.parametrize("command", [("rank", "guitar"), ("embed",), ("classify", "--label", "a cat")])
def test_a_byte_order_mark_is_no_part_of_the_first_text(
    here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    plain, marked = tmp_path / "plain.txt", tmp_path / "marked.txt"
    plain.write_text("a dog\nguitar\n")
    marked.write_bytes(codecs.BOM_UTF8 + plain.read_bytes())
    expected = here(*command, "--file", plain, "--json")
    assert expected.code == 0
    assert here(*command, "--file", marked, "--json") == expected
    for arguments in ((), ("--file", "-")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(marked.read_bytes()), encoding="utf-8"))
        assert here(*command, *arguments, "--json") == expected


@pytest.mark.parametrize("command", [("rank", "guitar"), ("embed",), ("classify", "--label", "a cat")])
def test_a_file_that_is_not_utf_8_is_named_with_its_line(
    semblance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    path, lines = tmp_path / "old.txt", "a dog\n\na café\n".encode("cp1252")
    path.write_bytes(lines)
    endless = f"semblance: {os.devnull} is a device, which may have no end\n"
    assert semblance(*command, "--file", os.devnull) == Ran(2, "", endless)
    why = "line 3: byte E9 is not UTF-8: save it as UTF-8\n"
    assert semblance(*command, "--file", path) == Ran(2, "", f"semblance: {path}: {why}")
    for arguments in ((), ("--file", "-")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines), encoding="utf-8"))
        assert semblance(*command, *arguments) == Ran(2, "", f"semblance: standard input: {why}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("score", "a", " "), f"pairs.0.b: {EMPTY}"),
        (("score", "a", "b", "--model", "x"), "model: no model 'x'; models for similarity: "),
        (("entail", " ", "b"), f"pairs.0.premise: {EMPTY}"),
        (("explain", "a", " "), f"b: {EMPTY}"),
        (("rank", "q", "a", " "), f"candidates.1: {EMPTY}"),
        (("embed", "a", "b", " "), f"sentences.2: {EMPTY}"),
        (("entail", "a", "b", "--model", "avg-paraphrase"), "model: model avg-paraphrase has no "),
        (("rank", "a", "b", "--rerank-top", "1"), "rerank_model: there is no default model"),
    ],
)
def test_a_refusal_is_one_line(here: Run, arguments: tuple[str, ...], message: str) -> None:
    found = here(*arguments)
    assert (found.code, found.out, found.err.count("\n")) == (1, "", 1)
    assert found.err.startswith(f"semblance: {message}")


@pytest.mark.parametrize(
    "command",
    ["score \udc80 b", "rank a b \udc80", "batch p.csv o.csv --prefix \udc80", "dedupe p\udc80.csv o.csv"],
)
def test_a_text_that_is_not_utf_8_is_refused(here: Run, command: str) -> None:
    code, out, err = here(*command.split())
    assert (code, out) == (2, "")
    assert "byte 80 is not UTF-8" in err


def test_no_service_is_one_line(semblance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semblance.client.clients.Retries", lambda _: Retries(0))
    port = free_port()
    for where, message in [
        (("--url", f"http://127.0.0.1:{port}"), f"semblance: no answer from http://127.0.0.1:{port}: "),
        (("--models-dir", tmp_path / "nowhere"), f"semblance: no folder of models at {tmp_path}/nowhere: name one "),
    ]:
        code, out, err = semblance("score", "a", "b", *where)
        assert (code, out, err.count("\n")) == (3, "", 1)
        assert err.startswith(message)


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "one"),
        ("score", "a", "b", "--url", "host:80"),
        ("rank", "q", "c", "--file", __file__),
        ("rank", "q", "--file", "/nowhere"),
        ("rank", "q", "--file", "/dev/null"),
        ("embed", "--file", "/dev/null"),
        ("embed", "s", "--file", __file__),
        ("rank", "q", "c", "--top-k", "0"),
        ("serve", "--set", "cache_bites=3"),
        ("serve", "--set", "cache_bytes"),
        ("batch", "x.jsonl", "y.jsonl", "--task", "guess"),
        ("nothing",),
    ],
)
def test_wrong_usage(semblance: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = semblance(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_a_command_that_is_not_there_is_compared_with_those_that_are_not_imported_yet(semblance: Run) -> None:
    assert "Did you mean 'choose'?" in semblance("chose").err


@pytest.mark.parametrize(("command", "what"), [(("rank", "a cat"), "candidates"), (("embed",), "sentences")])
def test_nothing_on_standard_input_is_said_in_plain_words(
    semblance: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], what: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n \n")))
    code, out, err = semblance(*command)
    assert (code, out) == (2, "")
    said = " ".join(err.replace("│", " ").split())
    assert f"there are no {what}: none were given, and standard input has no line with text" in said


@pytest.mark.parametrize("command", ["--version", "score a b", "batch in.csv out.csv", "serve --help-settings"])
def test_a_closed_standard_output_is_said(command: str) -> None:
    line = f"{shlex.quote(sys.executable)} -m semblance {command} >&-"
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "semblance: standard output is closed: for no output, send it to /dev/null\n"


def test_a_full_standard_output_is_named() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "semblance", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "semblance: standard output: No space left on device\n")


def test_a_closed_standard_input_has_no_lines() -> None:
    line = f"{shlex.quote(sys.executable)} -m semblance rank q --file - <&-"
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "there are no candidates" in done.stderr
    assert "Traceback" not in done.stderr


def test_version(semblance: Run) -> None:
    assert semblance("--version") == Ran(0, f"semblance {version()}\n", "")


def test_serve_runs_the_service(models: Path) -> None:
    port = free_port()
    command = f"{sys.executable} -m semblance serve --port {port} --models-dir {models} --set max_pairs=7"
    process = subprocess.Popen(shlex.split(command), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    often = Retries(retries=600, first_wait=0.1, longest_wait=0.1)
    try:
        with Client(f"http://127.0.0.1:{port}", retries=often) as client:
            assert client.models().limits.max_pairs == 7
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=NEEDED_SECONDS)
        assert "Traceback" not in err
    finally:
        process.kill()
        process.communicate()


def test_every_setting_of_the_service_is_printed(semblance: Run) -> None:
    code, out, _ = semblance("serve", "--help-settings")
    assert code == 0
    for name, field in Settings.model_fields.items():
        line = next(line for line in out.splitlines() if line.startswith(f"  SEMBLANCE_{name.upper()} ["))
        described = out[out.index(line) :].split("  SEMBLANCE_", 2)[1]
        assert " ".join((field.description or "").split())[:40] in " ".join(described.split())
