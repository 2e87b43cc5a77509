"""Who does what to whom: rewrites that keep it and edits that swap it, made of plain sentences by rules.

"A dog is chasing a cat." gives the passive "A cat is being chased by a dog." (label 1) and, with the roles swapped,
"A cat is chasing a dog." and "A dog is being chased by a cat." (label 0). A sentence that ends with a place gives one
that begins with it (label 1), so that not every other order of the same words is an edit.
"""

import random
import re
from collections.abc import Iterable, Iterator

from training.pairs import Pair

_VERBS = (
    "address approach attack block brush build carry catch chase clean climb cover cross cut decorate entertain "
    "examine fight film fix follow groom guard guide handle help hit hold hug inspect instruct interview kick kiss "
    "lead lick lift massage observe open paint pat pet photograph pick play point pour prepare present pull pursue "
    "push race record rescue ride scold serve shave shoot show slice steer stroke surround tackle teach throw touch "
    "train trim use visit walk wash watch wrestle"
)
_IRREGULAR = {
    "build": "built",
    "catch": "caught",
    "cut": "cut",
    "fight": "fought",
    "hit": "hit",
    "hold": "held",
    "lead": "led",
    "ride": "ridden",
    "shoot": "shot",
    "show": "shown",
    "teach": "taught",
    "throw": "thrown",
}
_DOUBLED = ("cut", "hit", "hug", "pat", "pet", "trim")  # hug -> hugging, hugged


def _forms(verb: str) -> tuple[str, str]:
    """The present and the past participle."""
    stem = verb + verb[-1] if verb in _DOUBLED else verb.removesuffix("e")
    past = f"{verb[:-1]}ied" if verb.endswith("rry") else f"{stem}ed"
    return f"{stem}ing", _IRREGULAR.get(verb, past)


PARTICIPLES = dict(_forms(verb) for verb in _VERBS.split())

# Words that end a noun phrase of at most two adjectives and a noun.
_NOT_IN_NOUNS = (
    r"(?!(?:and|or|of|in|on|at|to|by|with|for|from|into|near|through|over|under|behind|beside|that|who|which|while|as|"
    r"is|are|being|off|up|down|out|around|along|across|outside|inside|his|her|their|its|a|an|the)\b)"
)
_NOUNS = rf"(?:{_NOT_IN_NOUNS}[a-z-]+ ){{0,2}}{_NOT_IN_NOUNS}[a-z-]+"
_PHRASE = rf"(?:a|an|the|one|two|three|some|several|many) {_NOUNS}"
_PLACE = rf"(?:in|on|at|near|outside|inside|under|behind|beside|next to|in front of) (?:a|an|the) {_NOUNS}"
_ACTIVE = re.compile(
    rf"(?P<agent>{_PHRASE}) (?:is|are) (?P<verb>{'|'.join(PARTICIPLES)}) (?P<patient>{_PHRASE})"
    rf"(?P<place> {_PLACE})? ?\.?"
)
_PLACED = re.compile(rf"(?P<main>{_PHRASE} (?:is|are) .+) (?P<place>{_PLACE}) ?\.?")


def role_edits(sentences: Iterable[str]) -> Iterator[Pair]:
    """Pairs of the sentences that the rules fit, label 1 for a rewrite and 0 for an edit.

    Args:
        sentences: each gives up to four pairs; the order of a pair's texts is drawn.
    """
    draw = random.Random(0)
    for sentence in sentences:
        for rewrite, label in _changed(sentence.strip().lower()):
            texts = [sentence.strip(), rewrite]
            draw.shuffle(texts)
            yield Pair(texts[0], texts[1], label=label)


def _changed(sentence: str) -> Iterator[tuple[str, str]]:
    if found := _ACTIVE.fullmatch(sentence):
        agent, verb, patient, place = (found[name] or "" for name in ("agent", "verb", "patient", "place"))
        yield _sentence(f"{patient} {_be(patient)} being {PARTICIPLES[verb]} by {agent}{place}"), "1"
        yield _sentence(f"{patient} {_be(patient)} {verb} {agent}{place}"), "0"
        yield _sentence(f"{agent} {_be(agent)} being {PARTICIPLES[verb]} by {patient}{place}"), "0"
    elif found := _PLACED.fullmatch(sentence):
        yield _sentence(f"{found['place']}, {found['main']}"), "1"


def _be(phrase: str) -> str:
    first, last = phrase.split()[0], phrase.split()[-1]
    many = first in ("two", "three", "some", "several", "many") or (
        first == "the" and (last in ("men", "women", "children", "people") or (last[-1] == "s" and last[-2:] != "ss"))
    )
    return "are" if many else "is"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
