"""Numbers, codes, sizes, attributes and negations keep texts apart that are otherwise alike."""

import pytest

from core.attributes import difference, facts


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("screw M6 x 20", "screw M6x20"),
        ("screw M6 x 20", "screw M6 x 20, 100 pieces"),  # one says more
        ("bottle of 500 ml", "bottle, 0.5 l"),
        ("bottle of 500 ml", "0,5 Liter bottle"),
        ("1,000 users", "1000 users"),
        ("1.250,50 EUR", "1250.5 EUR"),
        ("part KB-2041", "part kb2041"),
        ("two cats", "2 cats"),
        ("due 26.11.2026", "due 2026-11-26"),
        ("10 %", "10 percent"),
        ("a cat", "4 cats"),  # only one has any
        ("a cat", "the cat"),
        ("iPhone 12", "iPhone12"),  # of different kinds
        ("90 minutes", "1.5 hours"),
        ("ink 603 XL", "ink 603XL"),
        ("100 screws", "screws, 100pcs"),
        ("the 1st floor", "the first floor"),
        ("a navy coat", "a blue coat"),
        ("ladies' shoe, M", "women's shoe"),
        ("it does not leak", "it leaves no water"),
        ("you may go in June", "you can go in June"),
        ("it was left at the right door", "it was left at the door on the right"),
        ("turn the light off", "the light can be switched off"),
    ],
)
def test_texts_that_say_the_same_agree(a: str, b: str) -> None:
    assert difference(facts(a), facts(b)) is None
    assert difference(facts(b), facts(a)) is None


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("screw M6 x 20", "screw M6 x 30", "20 is not 30"),
        ("screw M6 x 20", "screw M8 x 20", "M6 is not M8"),
        ("order 4711 is late", "order 4712 is late", "4711 is not 4712"),
        ("bottle of 500 ml", "bottle of 0.75 l", "500 ml is not 0.75 l"),
        ("two cats", "three cats", "two is not three"),
        ('24" monitor', "27 inch monitor", '24" is not 27 inch'),
        ("from 9 to 5", "from 9 to 6", "5 is not 6"),
        ("ticket AB-12 and 7", "ticket AB-13 and 7", "AB-12 is not AB-13"),
        ("opens on 26.11.2026", "opens on 27.11.2026", "26.11.2026 is not 27.11.2026"),
        ("16 GB", "16 MB", "16 GB is not 16 MB"),
        ("1.5 m", "1.5 cm", "1.5 m is not 1.5 cm"),
        ("ink 603", "ink 603XL", "603 is not 603XL"),
        ("the first bank", "the 2nd bank", "first is not 2nd"),
        ("coat, navy, L", "coat, charcoal, L", "navy is not charcoal"),
        ("shirt, M", "shirt, L", "M is not L"),
        ("lamp, dimmable", "lamp, not dimmable", "dimmable is not not dimmable"),
        ("the battery charges", "the battery does not charge", "charges is not not charge"),
        ("please cancel it", "please don't cancel it", "cancel is not not cancel"),
        ("jumper with zip", "jumper without zip", "zip is not not zip"),
        ("we must have it by noon", "we can have it by noon", "must is not can"),
        ("the heating doesn't turn on", "the heating doesn't turn off", "on is not off"),
        ("closed in May 2024", "closed in June 2024", "May is not June"),
        ("before the update", "after the update", "before is not after"),
    ],
)
def test_texts_that_differ_in_one_do_not(a: str, b: str, said: str) -> None:
    assert str(difference(facts(a), facts(b))) == said
    assert difference(facts(b), facts(a)) is not None
