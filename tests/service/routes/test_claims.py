"""`POST /claims`: documents and claims through HTTP: labels, evidence and where it stands, limits, bounds by cost."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.engine.admission import RequestContext
from service.engine.queue import Queue
from service.scoring import verification
from service.scoring.documents import sentences_in
from service.scoring.scorer import Scorer
from tests.harness import fakes
from tests.harness.estimates import costs, unmeasured
from tests.harness.requests import refused
from tests.harness.service import Client, Serve, ServeAside

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
DOCUMENT = (
    "# The man\n\n- a man plays the guitar\n- a dog runs in the park, \U0001f600 3 times\n\nThe cat sleeps. A man runs."
)
CLAIMS = ["a dog runs in the park 4 times", "the cat sleeps"]


@pytest.fixture(scope="module")
def published(serve_aside: ServeAside) -> Iterator[Callable[..., Any]]:
    """What the published models answer; they are opened once for all tests of this file."""

    def asked(path: str, **body: object) -> Any:
        response = ask(path, {"model": "minilm-cross"} | body)
        assert response.status_code == 200, response.text
        return response.json()["results"]

    with serve_aside(models_dir=(ROOT / "models",), preload=("none",)) as ask:
        yield asked


async def asked(client: Client, **body: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await client.answer("/claims", **{"documents": DOCUMENT, "claims": CLAIMS, **body})
    return answer


def passages_in(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [result[name] for name in ("evidence", "runner_up") if name in result]


async def test_each_claim_has_a_label_with_its_evidence_and_where_it_stands(client: Client) -> None:
    answer = await asked(client)
    assert (answer["model"], answer["encoder"]) == ("avg-sick", "avg-paraphrase")
    assert len(answer["results"]) == len(CLAIMS)
    for result in answer["results"]:
        assert sum(result["probabilities"].values()) == pytest.approx(1)
        assert result["confidence"] == max(result["probabilities"].values()) == result["probabilities"][result["label"]]
        assert ("evidence" in result) == (result["label"] != "not_stated")
        assert result.get("evidence", result)["label"] == result["label"] != result["runner_up"]["label"]
        assert result["truncated"] is False
        for each in passages_in(result):
            part = DOCUMENT[each["start"] : each["end"]]  # in code points: one of them is no single unit of UTF-16
            assert " ".join(part.replace("- ", "").split()) == each["text"]
            assert each["headings"] == ["The man"]
            assert each["label"] in ("entailed", "contradicted")


async def test_numbers_that_differ_are_named(client: Client) -> None:
    first, second = (await asked(client))["results"]
    dogs = [each for each in passages_in(first) if "dog" in each["text"]]
    assert dogs
    assert [each["differences"] for each in dogs] == [["4 times is not 3 times"]] * len(dogs)
    assert all(each["differences"] == [] for each in passages_in(second))


async def test_several_documents_are_one_and_evidence_says_which(client: Client) -> None:
    whole = await asked(client, documents=[DOCUMENT], claims=CLAIMS[:1])
    assert whole == await asked(client, claims=CLAIMS[:1])
    parted = await asked(client, documents=["a woman reads", DOCUMENT], claims=CLAIMS[:1], encoder="avg-sick")
    assert parted["encoder"] == "avg-sick"
    for each in passages_in(parted["results"][0]):
        text = ["a woman reads", DOCUMENT][each["document"]]
        assert each["text"].split()[0] in text[each["start"] : each["end"]]


async def test_an_answer_does_not_depend_on_the_other_claims(client: Client) -> None:
    whole = (await asked(client))["results"]
    for claim, result in zip(CLAIMS, whole, strict=True):
        (alone,) = (await asked(client, claims=[claim]))["results"]
        assert alone["label"] == result["label"]
        assert alone["probabilities"] == pytest.approx(result["probabilities"], abs=1e-5)
        assert [each["start"] for each in passages_in(alone)] == [each["start"] for each in passages_in(result)]


async def test_a_model_of_two_labels_is_refused_by_name(serve: Serve, tmp_path: Any) -> None:
    fakes.cosine_model(tmp_path / "avg-paraphrase")
    fakes.interaction_model(tmp_path / "three", "three")
    fakes.interaction_model(tmp_path / "two", "two", labels=("entailment", "not_entailment"))
    async with serve(models_dir=tmp_path, preload=("none",)) as client:
        body = {"documents": DOCUMENT, "claims": CLAIMS, "model": "two"}
        status, error = await refused(client, "/claims", json=body)
    assert (status, error["code"], error["field"]) == (422, "unsupported_task", "model")
    assert "two has no contradiction; models that have it: three" in str(error["message"])


async def test_a_document_alone_that_takes_too_long_is_refused_with_what_would_fit(serve: Serve) -> None:
    async with serve(request_timeout=400, worker_threads=1) as client:
        unmeasured(client)
        ran = costs(client, "avg-paraphrase", 10.0) + costs(client, "avg-sick", 1.0)
        document = "\n\n".join(f"{word} runs." for word in fakes.WORDS[:12] * 12)
        body = {"documents": document, "claims": ["a man"]}
        status, error = await refused(client, "/claims", json=body)
        assert (status, error["code"], error["field"]) == (413, "too_slow", "documents")
        assert "characters of documents" in str(error["message"])
        assert 0 < error["limit"] < len(document)  # type: ignore[operator]
        assert ran == []
        body["documents"] = document[: error["limit"]]  # type: ignore[index]
        assert (await client.post("/claims", json=body)).status_code == 200


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "document",
    ["a.\n\n" * 50_000, "a-" * 100_000, "x" * 200_000, "1 to " * 40_000, "| a | b |\n" * 20_000, "[" * 200_000],
    ids=lambda text: repr(text[:6]),
)
async def test_the_worst_documents_of_the_size_let_others_be_answered(client: Client, document: str) -> None:
    """None is refused half done, and the event loop goes on meanwhile."""
    heavy = asyncio.ensure_future(
        client.post("/claims", json={"documents": document, "claims": ["1 to " * 10_000, "a-" * 20_000]})
    )
    light = await client.get("/health/live")
    assert light.status_code == 200
    response = await heavy
    assert response.status_code in (200, 413, 429, 503), response.text
    if response.status_code == 200:
        assert len(response.json()["results"]) == 2


async def test_a_document_of_the_largest_size_is_read_to_its_end(client: Client) -> None:
    filler = [f"A {a} {b} the {c}." for a in fakes.WORDS for b in fakes.WORDS for c in fakes.WORDS[:4]]
    document = "\n".join(filler)[:199_000].rpartition("\n")[0] + "\n\nThe zebra sleeps."
    assert len(sentences_in(document)) > 100
    (result,) = (await asked(client, documents=document, claims=["the zebra sleeps"]))["results"]
    assert any("zebra" in each["text"] for each in passages_in(result))


@pytest.mark.parametrize(("document", "claim"), [("A dog runs.", "x x x"), ("x x x\n1 2\n", "A dog runs.")])
async def test_a_text_without_words_states_nothing(client: Client, document: str, claim: str) -> None:
    (result,) = (await asked(client, documents=document, claims=[claim]))["results"]
    assert (result["label"], result["probabilities"]["not_stated"], "evidence" in result) == ("not_stated", 1, False)


def test_word_pieces_of_what_is_no_word_entail_nothing(published: Callable[..., Any]) -> None:
    """A published model has pieces for any characters."""
    texts, ok = ["xx yy", "x x x", "12 34", "asdf jkl", "\u72d7\u8dd1"], "It is ok."
    *nothing, something = published("/claims", documents=f"{ok} A dog runs.", claims=[*texts, ok])
    assert [each["probabilities"]["not_stated"] for each in nothing] == [1] * len(texts)
    assert something["label"] == "entailed"
    unknown = ("\U0001f600", "\U0001f480")  # of the same ids
    of_texts = [*((text, ok) for text in texts), *((ok, text) for text in texts), unknown, (ok, ok)]
    pairs = [{"premise": premise, "hypothesis": hypothesis} for premise, hypothesis in of_texts]
    labels = [each["label"] for each in published("/entailment", pairs=pairs)]
    assert labels == [*["neutral"] * (2 * len(texts) + 1), "entailment"]


@pytest.mark.parametrize(
    "text",
    [
        "Side effects are seen in one in 1,000 patients.",
        "Batters faced: Sheets 28, Vizcaino 2, DeJean 4, Clement 26, Alfonseca 4, Guthrie 2, Farnsworth 4.",
    ],
)
def test_a_text_entails_itself(published: Callable[..., Any], text: str) -> None:
    """The model alone says that these contradict themselves."""
    document = f"# Of it\n\nThis is new. {text} It is known."
    (said,) = published("/claims", documents=document, claims=[text.lower().rstrip(".")])
    assert (said["label"], said["evidence"]["text"]) == ("entailed", text)
    (said,) = published("/entailment", pairs=[{"premise": text, "hypothesis": text}])
    assert said["probabilities"]["entailment"] == 1
    (said,) = published("/similarity", pairs=[{"a": text, "b": text.lower()}], task="paraphrase")
    assert said["score"] == 1


@pytest.mark.parametrize(
    ("document", "claim"),
    [
        ("2. Members may bring two guests.", "2. Members may bring two guests."),
        ("- The fee is **20 euros**.", "* The fee is [20 euros](fees.md)."),
        ("2) Members may bring two guests.", "\u00b7 Members may bring two guests."),
        ("No pets\nNo smoking\nNo parties", "No pets"),
        ("No pets\n\nNo smoking\n\nNo parties", "No parties"),
        ("Please quote invoice no. 4711 in your payment.", "Please quote invoice number 4711 in your payment."),
        ("Your contract number 4711 ends in May.", "Your contract no. 4711 ends in May."),
        ("Dogs are allowed in room no. 5. Cats are allowed everywhere.", "Dogs are allowed in room 5."),
        ("Welcome. Rooms for max. 5 guests cost min. 90 euros. We do.", "Rooms for max. 5 guests cost min. 90 euros."),
        ("Tenant\tJones Ltd\nLandlord\tSmith Ltd", "Tenant: Jones Ltd"),
        ("Entry fees\n\n> 65 years: free\n> 18 years: 9 euros", "> 65 years: free"),
        ("We open at 9 am. The fee is 20 euros. Parking is free.", "The fee is 20 euros. Parking is free."),
    ],
)
def test_a_claim_is_read_as_the_document_says_it(published: Callable[..., Any], document: str, claim: str) -> None:
    (said,) = published("/claims", documents=document, claims=[claim])
    assert said["label"] == "entailed"


@pytest.mark.parametrize(
    ("document", "claim"),
    [
        ("Pets are not allowed\nSmoking is not allowed\nParties are not allowed", "Pets are allowed."),
        ("Single: 80 euros\nDouble: 120 euros", "A single costs 120 euros."),
        ("- Single: 80 euros\n- Double: 120 euros", "A single costs 120 euros."),
        ("Room | Price\n--- | ---\nSingle | 80 euros\nDouble | 120 euros", "A single costs 120 euros."),
        ("**Adults:** 5 euros\n**Children:** 3 euros", "Adults pay 3 euros."),
        ("\u20ac5 adults\n\u20ac3 children", "Adults pay 3 euros."),
    ],
)
def test_neither_lines_without_full_stops_nor_items_are_one_sentence(
    published: Callable[..., Any], document: str, claim: str
) -> None:
    (said,) = published("/claims", documents=document, claims=[claim])
    assert said["label"] == "contradicted"


@pytest.mark.parametrize(
    ("document", "claim", "label"),
    [
        ("# Fees\n\n- 20 euros for adults\n- 10 euros for children", "Adults pay 20 euros.", "entailed"),
        ("## Minimum age\n\n16 years.", "The minimum age is 16 years.", "entailed"),
        ("## Check-in\n3 pm\n\n## Check-out\n11 am", "Check-out is at 3 pm.", "contradicted"),
    ],
)
def test_an_amount_beneath_a_heading_is_that_amount(
    published: Callable[..., Any], document: str, claim: str, label: str
) -> None:
    (said,) = published("/claims", documents=document, claims=[claim])
    assert said["label"] == label


async def test_a_document_that_states_nothing_is_refused(client: Client) -> None:
    for document in ("# Dogs", "~~A dog runs.~~", "<!-- A dog runs. -->"):
        response = await client.post("/claims", json={"documents": document, "claims": CLAIMS})
        assert response.status_code == 422
        assert "struck out" in response.json()["error"]["message"]


def test_what_only_some_may_do_they_may_do(published: Callable[..., Any]) -> None:
    """The model alone says that these contradict each other."""
    document = "Only managers can approve overtime. Flights are booked by the travel desk only."
    claims = ["Managers can approve overtime.", "Flights are booked by the travel desk."]
    assert [each["label"] for each in published("/claims", documents=document, claims=claims)] == ["entailed"] * 2


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Give ten to thirty mg now.", "Give ten to twenty mg now."),
        ("The grant is 20,000 euros.", "The grant is between 5 and 10 million euros."),
        ("Call (617) 227-4000 for help.", "Call (617) 227-9000 for help."),
        ("The loan is 5 million US dollars.", "The loan is 5 million euros."),
        ("Paid in Q1 FY25.", "Paid in Q1 FY24."),
        ("We are closed on Mondays.", "We are closed on Tuesdays."),
        ("Fee: \u00a31,000 per year", "The fee is \u00a32,000 per year."),
        ("The annual fee is \u00a31,000.", "You pay \u00a31,000,000 each year."),
        ("Cut a 3/8 inch hole.", "Cut a hole of 8 inches."),
        ("He has type II diabetes.", "He has type I diabetes."),
        ("The room is open Monday to Friday.", "The room is open on Sunday."),
        ("The shop opens at 9 am and closes at 5 pm.", "The shop opens at 9 pm."),
        ("1.5 GB of data are included.", "2.5 GB of data are included."),
        ("Fees\n\n12.50 EUR for adults\n8.50 EUR for children", "99.50 EUR for adults"),
    ],
)
def test_what_differs_in_an_amount_alone_is_not_entailed(published: Callable[..., Any], text: str, claim: str) -> None:
    """The model alone says that it is."""
    (said,) = published("/claims", documents=f"# Of it\n\n{text}", claims=[claim])
    assert said["label"] != "entailed"
    assert said["probabilities"]["entailed"] < 0.1


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("The grant is between 5 and 10 million euros.", "The grant is at least 5 million euros."),
        ("The grant is one and a half million euros.", "The grant is 1.5 million euros."),
        ("The ticket costs $5.99.", "The ticket costs 5 dollars and 99 cents."),
        ("The fee is 20 euros.", "The fee is 2000 cents."),
        ("The temperature is minus 5 degrees.", "The temperature is -5 degrees."),
        ("The trip takes one and a half hours.", "The trip takes 90 minutes."),
        ("The fee is less than 30 euros.", "The fee is at most 30 euros."),
        ("Over 30 people work here.", "At least 20 people work here."),
        ("The room is open Monday to Friday.", "The room is open on Tuesday."),
    ],
)
def test_what_follows_by_its_amounts_is_entailed(published: Callable[..., Any], text: str, claim: str) -> None:
    (said,) = published("/claims", documents=text, claims=[claim])
    assert said["label"] == "entailed"
    assert said["confidence"] > 0.9


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("Antihistamines are contraindicated.", "Antihistamines contraindicated."),
        ("Dishwashers.", "Dishwashers!"),
    ],
)
def test_words_that_the_model_reads_in_pieces_are_words(
    published: Callable[..., Any], passage: str, claim: str
) -> None:
    (said,) = published("/claims", documents=f"{passage} A dog runs.", claims=[claim])
    assert (said["label"], said["evidence"]["text"]) == ("entailed", passage)


async def test_very_many_sentences_are_refused(client: Client) -> None:
    body = {"documents": "- it\n" * 10_001, "claims": CLAIMS}
    status, error = await refused(client, "/claims", json=body)
    assert (status, error["field"], error["limit"]) == (413, "documents", 10_000)


async def test_an_answer_is_small_whatever_a_heading_is(client: Client) -> None:
    answer = await asked(client, documents="# " + "dogs " * 38_000 + "\n\n" + DOCUMENT[12:], claims=CLAIMS * 10)
    titles = [title for result in answer["results"] for each in passages_in(result) for title in each["headings"]]
    assert titles
    assert max(map(len, titles)) <= 120


async def test_a_passage_is_the_premise_and_a_claim_the_hypothesis(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, real = [], Scorer.read_claims

    async def watched(scorer: Scorer, context: Any, premises: Any, hypotheses: Any) -> Any:
        read.extend((each.words, other.words) for each, other in zip(premises, hypotheses, strict=True))
        return await real(scorer, context, premises, hypotheses)

    monkeypatch.setattr(Scorer, "read_claims", watched)
    await asked(client, documents="A man plays the guitar in the park.", claims=["A man plays"])
    assert [(premise > 5, hypothesis) for premise, hypothesis in read] == [(True, 3)]


async def test_the_first_stage_says_what_work_follows() -> None:
    queue, context = Queue(1), RequestContext()
    await verification.read_documents(context, queue, ["A dog runs. " * 200], 2.0)
    queue.close()
    assert context.expected > 2.0


@pytest.mark.parametrize("sentence", ["a dog runs in the park", "9 in 10 dogs of 5 kg run 3 times", "((((( ((((("])
async def test_passages_are_joined_beside_the_event_loop(
    client: Client, monkeypatch: pytest.MonkeyPatch, sentence: str
) -> None:
    threads, verdict = [], verification.verdict

    def noted(*args: Any) -> Any:
        threads.append(threading.current_thread())
        return verdict(*args)

    monkeypatch.setattr(verification, "verdict", noted)
    await asked(client, documents=f"{sentence}. " * 20, claims=["one in ten dogs runs"])
    assert [each is threading.main_thread() for each in threads] == [False]
