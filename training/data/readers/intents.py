"""Requests and the intent that people gave each: of a bank's customers, and to assistants of many domains."""

from training.data.files import one_of, read_rows

FILES = {
    "banking77": "intents-banking77/banking77.tsv.gz",
    "clinc150": "intents-clinc150/clinc150.tsv.gz",
    "hwu64": "intents-hwu64/hwu64.tsv.gz",
}


def read(name: str) -> list[tuple[str, str]]:
    """(text, intent) of one of `FILES`.

    Raises:
        ValueError: no such file.
        CorpusError: it is missing or malformed.
    """
    file = FILES[one_of("intents", name, FILES)]
    return [(row.text("text"), row.raw("intent")) for row in read_rows(name, file, ("text", "intent"))]
