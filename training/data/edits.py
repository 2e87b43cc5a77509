"""Pairs that are made of sentences by rules: one says the same in other words (label 1), another does not (label 0).

Roles: "A dog is chasing a cat." gives the passive "A cat is being chased by a dog." (1) and, with the roles swapped,
"A cat is chasing a dog." and "A dog is being chased by a cat." (0). A sentence that ends with a place gives one that
begins with it (1), so that not every other order of the same words is an edit.

Surface: a text says the same as itself (1): as it is, with other capitals or punctuation, contracted ("is not" to
"isn't") or with a typing error. It says something else with another number (0).

Requests: a word is replaced by one of its own side of the tables below ("raise" by "increase": 1) or of the other side
("raise" by "lower": 0), or start and end are exchanged ("from A to B"). The frame around it changes in both alike ("How
do I ...?" to "Please tell me how to ..."; a verb to its noun), so that neither the change of a word nor that of the
frame gives the label away.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from training.data.pairs import Pair

Edits = Iterator[tuple[str, str]]  # texts made of another one, each with the label of the pair
Change = Callable[[str, random.Random], str | None]  # a text in other words; None: the rule does not fit

# Verb, past, participle.
_STRONG_VERBS = """
begin began begun; build built built; buy bought bought; catch caught caught; choose chose chosen; cut cut cut;
fight fought fought; forbid forbade forbidden; forget forgot forgotten; freeze froze frozen; hide hid hidden;
hit hit hit; hold held held; lead led led; lend lent lent; lose lost lost; ride rode ridden; sell sold sold;
send sent sent; shoot shot shot; show showed shown; split split split; teach taught taught; throw threw thrown;
unfreeze unfroze unfrozen; win won won; withdraw withdrew withdrawn
"""
_DOUBLING = "begin cut forbid forget hit hug pat permit pet split stop submit trim win"  # hugging, hugged
_IRREGULAR = {verb: (past, participle) for verb, past, participle in map(str.split, _STRONG_VERBS.split(";"))}
_DOUBLED = tuple(_DOUBLING.split())


def _present(verb: str) -> str:
    """The third person: cancels, carries."""
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z")) else f"{verb}s"


def _past(verb: str) -> tuple[str, str]:
    """The past and its participle."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("y") and verb[-2] not in "aeiou":
        regular = f"{verb[:-1]}ied"
    else:
        regular = f"{(verb + verb[-1] if verb in _DOUBLED else verb).removesuffix('e')}ed"
    return regular, regular


def _progressive(verb: str) -> str:
    return f"{(verb + verb[-1] if verb in _DOUBLED else verb).removesuffix('e')}ing"


# Roles.
_ACTIONS = """
address approach attack block brush build carry catch chase clean climb cover cross cut decorate entertain examine fight
film fix follow groom guard guide handle help hit hold hug inspect instruct interview kick kiss lead lick lift massage
observe open paint pat pet photograph pick play point pour prepare present pull pursue push race record rescue ride
scold serve shave shoot show slice steer stroke surround tackle teach throw touch train trim use visit walk wash watch
wrestle
"""
PARTICIPLES = {_progressive(verb): _past(verb)[1] for verb in _ACTIONS.split()}
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


def _roles(text: str, _: random.Random) -> Edits:
    """Up to three edits of a sentence that the rules fit."""
    if found := _ACTIVE.fullmatch(text.lower()):
        agent, verb, patient, place = (found[name] or "" for name in ("agent", "verb", "patient", "place"))
        yield _sentence(f"{patient} {_be(patient)} being {PARTICIPLES[verb]} by {agent}{place}"), "1"
        yield _sentence(f"{patient} {_be(patient)} {verb} {agent}{place}"), "0"
        yield _sentence(f"{agent} {_be(agent)} being {PARTICIPLES[verb]} by {patient}{place}"), "0"
    elif found := _PLACED.fullmatch(text.lower()):
        yield _sentence(f"{found['place']}, {found['main']}"), "1"


def _be(phrase: str) -> str:
    first, last = phrase.split()[0], phrase.split()[-1]
    many = first in ("two", "three", "some", "several", "many") or (
        first == "the" and (last in ("men", "women", "children", "people") or (last[-1] == "s" and last[-2:] != "ss"))
    )
    return "are" if many else "is"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


# Surface.
_CONTRACTIONS = """
is not | isn't; are not | aren't; was not | wasn't; were not | weren't; do not | don't; does not | doesn't;
did not | didn't; has not | hasn't; have not | haven't; can not | can't; cannot | can't; could not | couldn't;
will not | won't; would not | wouldn't; should not | shouldn't; i am | i'm; i have | i've; it is | it's;
they are | they're; we are | we're; you are | you're; what is | what's; there is | there's
"""
_SHORT = dict(each.strip().split(" | ") for each in _CONTRACTIONS.split(";"))
_WRITTEN = {**_SHORT, **{short: long for long, short in _SHORT.items() if long != "can not"}}
_CONTRACTED = re.compile(rf"\b(?:{'|'.join(sorted(_WRITTEN, key=len, reverse=True))})\b(?!')", re.IGNORECASE)
_LONG_WORD = re.compile(r"\b[a-z]{5,}\b")
_NUMBER = re.compile(r"\b\d{1,4}\b")


def _surface(text: str, draw: random.Random) -> Edits:
    """One edit that says the same, and one more of a sentence with a number."""
    yield draw.choice(_WAYS_TO_WRITE)(text, draw), "1"
    if found := list(_NUMBER.finditer(text)):
        place = draw.choice(found)
        other = int(place[0]) + draw.choice((1, 2, 3, 5, 10, 20))
        yield f"{text[: place.start()]}{other}{text[place.end() :]}", "0"


def _bare(text: str, draw: random.Random) -> str:
    """Without the marks at its end, or without those between words too; itself where nothing would be left."""
    bare = text.rstrip(" .!?")
    return (bare if draw.random() < 0.5 else re.sub(r"[,;:!?\"]", "", bare)) or text


def _rewritten(text: str, _: random.Random) -> str:
    """Contractions written out, and the other way round."""

    def other(found: re.Match[str]) -> str:
        written = _WRITTEN[found[0].lower()]
        return written[0].upper() + written[1:] if found[0][0].isupper() else written

    return _CONTRACTED.sub(other, text)


def _mistyped(text: str, draw: random.Random) -> str:
    """One word of five or more letters with two letters swapped, one left out, or one typed twice."""
    found = list(_LONG_WORD.finditer(text))
    if not found:
        return text
    word = draw.choice(found)
    i = draw.randrange(word.start() + 1, word.end() - 1)
    typed = draw.choice((text[i + 1] + text[i], text[i + 1], text[i] * 2 + text[i + 1]))
    return text[:i] + typed + text[i + 2 :]


_WAYS_TO_WRITE: tuple[Callable[[str, random.Random], str], ...] = (
    *(_mistyped, _mistyped, _bare),
    *(lambda text, _: text, lambda text, _: text.lower()),
    _rewritten,
)

# Requests. Words of one side mean much the same, words of two sides the opposite.
_VERBS = """
raise increase | lower reduce decrease; enable activate | disable deactivate; import | export; upload | download;
add | remove delete; install | uninstall; open | close; start begin | stop end; send | receive; buy purchase | sell;
lock | unlock; block | unblock; subscribe | unsubscribe; accept approve | reject decline; show display | hide;
allow permit | forbid prohibit; borrow | lend; deposit | withdraw; encrypt | decrypt; connect | disconnect;
expand | collapse; load | unload; pack | unpack; merge combine join | split divide separate; gain | lose; win | lose;
remember | forget; arrive | depart; push | pull; attach | detach; include | exclude; publish | unpublish;
archive | restore; extend lengthen | shorten; grant | revoke; hire employ | dismiss; love | hate; fill | empty;
freeze | unfreeze; pause suspend | resume continue; charge | refund
"""
_OTHERS = """
before | after; with | without; above | below; more | fewer less; first | last; always | never; minimum | maximum;
smallest | largest biggest; cheapest | dearest; inside | outside; early | late; inbound incoming | outbound outgoing;
personal private | public; same | different; internal | external; old | new; monthly | yearly; daily | weekly;
weekday | weekend; today | tomorrow; morning | evening; breakfast | dinner; sender | recipient; buyer | seller;
landlord | tenant; credit | debit; domestic | international; manually | automatically; temporarily | permanently;
fastest quickest | slowest; hot | cold; safe | dangerous
"""
_SAME = """
fix repair; choose select pick; change modify; correct rectify; help assist; film movie; car vehicle; shop store;
big large; quick fast rapid; error mistake; mobile cell; doctor physician; photo picture; job position;
holiday vacation; child kid; trip journey; error fault; enough sufficient
"""
# What a command's verb becomes as a noun.
_NOUNS_OF_VERBS = """
cancel cancellation; activate activation; renew renewal; delete deletion; transfer transfer; return return;
verify verification; replace replacement; register registration; remove removal; install installation;
confirm confirmation; increase increase; pay payment; deliver delivery; close closure; open opening; book booking;
reset reset
"""
_NOUN_OF = dict(map(str.split, _NOUNS_OF_VERBS.split(";")))
_WORD = re.compile(r"[a-z][a-z-]*")
_WAY = re.compile(r"\bfrom (?P<start>(?:my |the )?[a-z0-9]+) to (?P<end>(?:my |the )?[a-z0-9]+)\b")
_OBJECT = r"(?P<object>(?:my|the|our|this) [a-z]+(?: [a-z]+)?)"
_NOMINAL = re.compile(rf"\b(?P<verb>{'|'.join(_NOUN_OF)}) {_OBJECT}(?P<mark>[.?]?)$")

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


def _tables() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """For each form of a word the same form of words that mean the same, and of those that mean the opposite."""
    same: dict[str, list[str]] = {}
    opposite: dict[str, list[str]] = {}
    for table, inflected in ((_VERBS, True), (_OTHERS, False), (_SAME, False)):
        for entry in table.split(";"):
            sides = [[_forms(word) if inflected else [word] for word in side.split()] for side in entry.split("|")]
            for side, other in zip(sides, reversed(sides), strict=True):
                for word in side:
                    for place, form in enumerate(word):
                        same.setdefault(form, []).extend(w[place] for w in side if w is not word)
                        if len(sides) == 2:
                            opposite.setdefault(form, []).extend(w[place] for w in other)
    return same, opposite


def _forms(verb: str) -> list[str]:
    return [verb, _present(verb), _past(verb)[0], _progressive(verb)]


SAME, OPPOSITE = _tables()


def _requests(text: str, draw: random.Random) -> Edits:
    """Up to two edits: a rewording, and the rewording of the opposite.

    A text that has a word with an opposite gives both; one that only has another frame or a synonym gives the first,
    once in three times, so that there are not many more of them.
    """
    words = text.lower()
    opposite = _turned(words) or _replaced(words, OPPOSITE, draw)
    same = _reworded(words, draw)

    def cased(edit: str) -> str:
        return f"{edit[0].upper()}{edit[1:]}" if text[:1].isupper() else edit

    if opposite is not None:
        other = _reworded(opposite, draw) if draw.random() < 0.5 else None
        yield cased(other or opposite), "0"
    if same is not None and (opposite is not None or draw.random() < 1 / 3):
        yield cased(same), "1"


def _turned(text: str) -> str | None:
    """From there to here, where it was from here to there."""
    turned = _WAY.sub(r"from \g<end> to \g<start>", text)
    return None if turned == text else turned


def _reworded(text: str, draw: random.Random) -> str | None:
    """The same in other words: a synonym, a noun for its verb, another frame, or several of these; None without any."""
    found = text
    ways: tuple[Change, ...] = (_synonym, _nominal, _framed)
    for way in ways:
        found = way(found, draw) or found
    return None if found == text else found


def _synonym(text: str, draw: random.Random) -> str | None:
    return _replaced(text, SAME, draw)


def _nominal(text: str, draw: random.Random) -> str | None:
    found = _NOMINAL.search(text)
    if found is None or draw.random() < 0.5:
        return None
    return f"{text[: found.start()]}get the {_NOUN_OF[found['verb']]} of {found['object']} done{found['mark']}"


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


RULES: Mapping[str, Callable[[str, random.Random], Edits]] = {
    "role-edits": _roles,
    "surface-edits": _surface,
    "request-edits": _requests,
}


def edits(kind: str, texts: Iterable[str], seed: int = 0) -> Iterator[Pair]:
    """Pairs of texts and their edits, label 1 where both say the same.

    Args:
        kind: one of `RULES`.
        texts: sentences; questions and requests.
        seed: of the draws, and of the order of the two texts of a pair.
    """
    draw = random.Random(seed)
    for text in map(str.strip, texts):
        for edit, label in RULES[kind](text, draw):
            pair = [text, edit]
            draw.shuffle(pair)
            yield Pair(pair[0], pair[1], label=label)
