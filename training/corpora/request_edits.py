"""The same request in other words, and another request in the same words, made of questions and requests by rules.

A word is replaced by one of its own side of the tables below ("raise" by "increase": the same, label 1) or of the other
side ("raise" by "lower": not the same, label 0), or start and end are exchanged ("from A to B"). The frame around it
changes in both alike ("How do I ...?" to "Please tell me how to ..."; a verb to its noun), so that neither the change
of a word nor that of the frame gives the label away.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator

from training.pairs import Pair

# Words of one side mean much the same in a request, words of two sides the opposite.
_VERBS = """
raise increase | lower reduce decrease
enable activate | disable deactivate
import | export
upload | download
add | remove delete
install | uninstall
open | close
start begin | stop end
send | receive
buy purchase | sell
lock | unlock
block | unblock
subscribe | unsubscribe
accept approve | reject decline
show display | hide
allow permit | forbid prohibit
borrow | lend
deposit | withdraw
encrypt | decrypt
connect | disconnect
expand | collapse
load | unload
pack | unpack
merge combine join | split divide separate
gain | lose
win | lose
remember | forget
arrive | depart
push | pull
attach | detach
include | exclude
publish | unpublish
archive | restore
extend lengthen | shorten
grant | revoke
hire employ | dismiss
love | hate
fill | empty
freeze | unfreeze
pause suspend | resume continue
charge | refund
"""
_OTHERS = """
before | after
with | without
above | below
more | fewer less
first | last
always | never
minimum | maximum
smallest | largest biggest
cheapest | dearest
inside | outside
early | late
inbound incoming | outbound outgoing
personal private | public
same | different
internal | external
old | new
monthly | yearly
daily | weekly
weekday | weekend
today | tomorrow
morning | evening
breakfast | dinner
sender | recipient
buyer | seller
landlord | tenant
credit | debit
domestic | international
manually | automatically
temporarily | permanently
fastest quickest | slowest
hot | cold
safe | dangerous
"""
_SAME = """
fix repair
choose select pick
change modify
correct rectify
help assist
film movie
car vehicle
shop store
big large
quick fast rapid
error mistake
mobile cell
doctor physician
photo picture
job position
holiday vacation
child kid
trip journey
error fault
enough sufficient
"""
_IRREGULAR = {
    "begin": "begins began beginning",
    "send": "sends sent sending",
    "buy": "buys bought buying",
    "sell": "sells sold selling",
    "lend": "lends lent lending",
    "withdraw": "withdraws withdrew withdrawing",
    "forget": "forgets forgot forgetting",
    "lose": "loses lost losing",
    "win": "wins won winning",
    "hide": "hides hid hiding",
    "show": "shows showed showing",
    "choose": "chooses chose choosing",
    "split": "splits split splitting",
    "forbid": "forbids forbade forbidding",
    "freeze": "freezes froze freezing",
    "unfreeze": "unfreezes unfroze unfreezing",
}
_DOUBLED = ("stop", "permit", "submit")
# What a command's verb becomes as a noun, and as a participle.
_NOUNS = {
    "cancel": "cancellation",
    "activate": "activation",
    "renew": "renewal",
    "delete": "deletion",
    "transfer": "transfer",
    "return": "return",
    "verify": "verification",
    "replace": "replacement",
    "register": "registration",
    "remove": "removal",
    "install": "installation",
    "confirm": "confirmation",
    "increase": "increase",
    "pay": "payment",
    "deliver": "delivery",
    "close": "closure",
    "open": "opening",
    "book": "booking",
    "reset": "reset",
}
_WORD = re.compile(r"[a-z][a-z-]*")
_WAY = re.compile(r"\bfrom (?P<start>(?:my |the )?[a-z0-9]+) to (?P<end>(?:my |the )?[a-z0-9]+)\b")
_OBJECT = r"(?P<object>(?:my|the|our|this) [a-z]+(?: [a-z]+)?)"
_NOUN = re.compile(rf"\b(?P<verb>{'|'.join(_NOUNS)}) {_OBJECT}(?P<mark>[.?]?)$")

# (how a request begins, other beginnings of the same request, its mark at the end); {} is what follows.
_FRAMES = (
    (r"how (?:do|can|should|could) i (.+)", ("what is the way to {}?", "please tell me how to {}.", "how to {}?")),
    (r"how to (.+)", ("how do i {}?", "what do i have to do to {}?", "i want to know how to {}.")),
    (r"(?:can|could|would) you (?:please )?(.+)", ("please {}.", "i would like you to {}.", "would you {} for me?")),
    (r"please (.+)", ("can you {}?", "i would like you to {}.", "could you {} for me?")),
    (r"(?:can|may|could) i (.+)", ("is it possible to {}?", "am i able to {}?", "i wonder whether i can {}.")),
    (r"i (?:want|need|would like|'d like) to (.+)", ("how can i {}?", "i wish to {}.", "please help me {}.")),
    (r"is there (?:a|any) way to (.+)", ("can i {}?", "is it possible to {}?", "how could one {}?")),
    (r"what is the best way to (.+)", ("how should i {}?", "how do i best {}?")),
    (r"help me (?:to )?(.+)", ("i need help to {}.", "please assist me to {}.")),
)  # fmt: skip
_PATTERNS = tuple((re.compile(pattern), others) for pattern, others in _FRAMES)


def _forms(verb: str) -> list[str]:
    if verb in _IRREGULAR:
        return [verb, *_IRREGULAR[verb].split()]
    stem = verb + verb[-1] if verb in _DOUBLED else verb
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return [verb, f"{verb[:-1]}ies", f"{verb[:-1]}ied", f"{verb}ing"]
    plural = f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z")) else f"{verb}s"
    return [verb, plural, f"{stem}d" if verb.endswith("e") else f"{stem}ed", f"{stem.removesuffix('e')}ing"]


def _tables() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """For each form of a word the same form of words that mean the same, and of those that mean the opposite."""
    same: dict[str, list[str]] = {}
    opposite: dict[str, list[str]] = {}
    for lines, inflected in ((_VERBS, True), (_OTHERS, False), (_SAME, False)):
        for line in lines.strip().splitlines():
            sides = [[_forms(word) if inflected else [word] for word in side.split()] for side in line.split("|")]
            for side, other in zip(sides, reversed(sides), strict=True):
                for word in side:
                    for place, form in enumerate(word):
                        same.setdefault(form, []).extend(w[place] for w in side if w is not word)
                        if len(sides) == 2:
                            opposite.setdefault(form, []).extend(w[place] for w in other)
    return same, opposite


SAME, OPPOSITE = _tables()


def request_edits(texts: Iterable[str], seed: int = 0) -> Iterator[Pair]:
    """Up to two pairs of each text: a rewording, label 1, and the rewording of its opposite, label 0.

    A text that has a word with an opposite gives both; one that only has another frame or a synonym gives the first,
    once in three times, so that there are not many more of them.

    Args:
        texts: questions and requests.
        seed: of the draws, and of the order of the two texts.
    """
    draw = random.Random(seed)
    for text in texts:
        plain = text.strip()
        words = plain.lower()
        opposite = _turned(words) or _replaced(words, OPPOSITE, draw)
        same = _reworded(words, draw)
        if opposite is not None:
            other = _reworded(opposite, draw) if draw.random() < 0.5 else None
            yield _pair(plain, other or opposite, "0", draw)
        if same is not None and (opposite is not None or draw.random() < 1 / 3):
            yield _pair(plain, same, "1", draw)


def _pair(a: str, b: str, label: str, draw: random.Random) -> Pair:
    texts = [a, f"{b[0].upper()}{b[1:]}" if a[:1].isupper() else b]
    draw.shuffle(texts)
    return Pair(texts[0], texts[1], label=label)


def _reworded(text: str, draw: random.Random) -> str | None:
    """The same in other words: a synonym, a noun for its verb, another frame, or several of these; None without any."""
    found = text
    ways: tuple[Callable[[str, random.Random], str | None], ...] = (_synonym, _nominal, _framed)
    for way in ways:
        found = way(found, draw) or found
    return None if found == text else found


def _turned(text: str) -> str | None:
    """From there to here, where it was from here to there."""
    turned = _WAY.sub(r"from \g<end> to \g<start>", text)
    return None if turned == text else turned


def _synonym(text: str, draw: random.Random) -> str | None:
    return _replaced(text, SAME, draw)


def _nominal(text: str, draw: random.Random) -> str | None:
    found = _NOUN.search(text)
    if found is None or draw.random() < 0.5:
        return None
    return f"{text[: found.start()]}get the {_NOUNS[found['verb']]} of {found['object']} done{found['mark']}"


def _framed(text: str, draw: random.Random) -> str | None:
    for pattern, others in _PATTERNS:
        if found := pattern.fullmatch(text.rstrip(" ?.!")):
            return draw.choice(others).format(found[1])
    return None


def _replaced(text: str, table: dict[str, list[str]], draw: random.Random) -> str | None:
    places = [found for found in _WORD.finditer(text) if table.get(found[0])]
    if not places:
        return None
    place = draw.choice(places)
    return f"{text[: place.start()]}{draw.choice(table[place[0]])}{text[place.end() :]}"
