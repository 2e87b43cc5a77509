"""A document's sentences: where each ends and stands, and which lines are headings, items and rows."""

import re

import pytest

from service.scoring.documents import LONGEST, context_of, sentences_in
from service.scoring.sentences import spans_of

POLICY = """\
# Returns

Thank you for your order. This page says
what you can send back.

## Deadlines

- Unused goods: 30 days.
- Opened goods: 14 days.
  They must be *complete*.
- You may not return:
  - food
  - underwear

After 30 days: no refund.

Exceptions
----------
1. Late deliveries.
2. Gifts

| Country | Days | Fee |
|---|---|---|
| Germany | 3 | none |
| France | 5 to 7 | 4 \u20ac |

4. Contact

Write to **help@example.com**. See [here](http://example.com/a).

4.1 Phone

Call us from 9 to 5.

Final words
We may change this page.
"""


def said(document: str) -> list[tuple[tuple[str, ...], str]]:
    return [(each.headings, each.text) for each in sentences_in(document)]


def test_a_policy_is_read_with_its_headings() -> None:
    deadlines, exceptions = ("Returns", "Deadlines"), ("Returns", "Exceptions")
    contact = (*exceptions, "4. Contact")
    assert said(POLICY) == [
        (("Returns",), "Thank you for your order."),
        (("Returns",), "This page says what you can send back."),
        (deadlines, "Unused goods: 30 days."),
        (deadlines, "Opened goods: 14 days."),
        (deadlines, "They must be complete."),
        ((*deadlines, "You may not return"), "food"),
        ((*deadlines, "You may not return"), "underwear"),
        (deadlines, "After 30 days: no refund."),
        (exceptions, "Late deliveries."),
        (exceptions, "Gifts"),
        (exceptions, "Germany; Days: 3; Fee: none"),
        (exceptions, "France; Days: 5 to 7; Fee: 4 \u20ac"),
        (contact, "Write to help@example.com."),
        (contact, "See here."),
        ((*contact, "4.1 Phone"), "Call us from 9 to 5."),
        ((*exceptions, "Final words"), "We may change this page."),
    ]


def test_positions_are_those_of_the_document() -> None:
    assert [each.block for each in sentences_in(POLICY)] == [1, 1, 3, 4, 4, 6, 7, 8, 10, 11, 12, 13, 15, 15, 16, 17]
    for each in sentences_in(POLICY):
        part = POLICY[each.start : each.end]
        assert part == part.strip() != ""
        of_table = ["Days", "Fee"] if part.startswith("|") else []
        assert [word for word in re.findall(r"\w+", each.text) if word not in part] == of_table


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        ("No refunds after 30 days", ["No refunds after 30 days"]),  # nothing follows it
        ("Refunds\n\nWithin 30 days.", ["Refunds > Within 30 days."]),
        ("REFUNDS\nWithin 30 days.", ["REFUNDS > Within 30 days."]),
        ("**Refunds:**\nWithin 30 days.", ["Refunds: > Within 30 days."]),
        ("Refunds are made\nwithin 30 days.", ["Refunds are made within 30 days."]),  # a line that goes on
        ("Item\tPrice\nApple\t2 \u20ac\nPear\t3 \u20ac", ["Apple; Price: 2 \u20ac", "Pear; Price: 3 \u20ac"]),
        ("Landlord\tSmith Ltd\nTenant\tJones Ltd", ["Landlord: Smith Ltd", "Tenant: Jones Ltd"]),
        ("Rent\t800 euros\nTenant\tJones Ltd", ["Rent: 800 euros", "Tenant: Jones Ltd"]),
        ("Plan\tCost\tDogs\nBasic\tlow\tno", ["Basic; Cost: low; Dogs: no"]),
        ("item,price\nboat,20 euros\nbike,1\n\nText.", ["boat; price: 20 euros", "bike; price: 1", "Text."]),
        ("Artikel;Preis\nBoot;3,50", ["Boot; Preis: 3,50"]),
        ("item,price\nboat, free\nbike, 1", ["boat; price: free", "bike; price: 1"]),
        (
            "We open at nine, usually\non Sunday at 5, or so\nor later, too",
            ["We open at nine, usually on Sunday at 5, or so or later, too"],
        ),
        ('Item,"Net, 2024"\nBoat,"20,00"', ["Boat; Net, 2024: 20,00"]),
        (
            "We came, late\nas we do, and left. It\nwas cold there, of course, but we liked it.",
            ["We came, late as we do, and left.", "It was cold there, of course, but we liked it."],
        ),
        ("It is late, so\nwe ask 5 euros, as usual.", ["It is late, so we ask 5 euros, as usual."]),
        ("1. We open at nine.\n2. We close at five.", ["We open at nine.", "We close at five."]),
        ("\r\n# A\r\n\r\nIt is.\r\nWe do.", ["A > It is.", "A > We do."]),
        ("```\nmake serve\n```", ["make serve"]),
        ("# Only a heading", []),
        ("It is ~~40~~ 50 euros. ~~Dogs may enter.~~", ["It is 50 euros."]),
        ('![30](data:image/png;base64,3000) It is [20 euros](/a_(b) "was 30").', ["It is 20 euros."]),
        ("A.\n<!-- Dogs may enter.\nCats too. -->\nB.", ["A.", "B."]),
        ("It is so. <!-- B.", ["It is so. <!-- B."]),
        ("- [ ] Repair the roof.\n- [x] The door is new.", ["[x] The door is new."]),
        ("", []),
        ("A b c d e f g h i j k\n\nText.", ["A b c d e f g h i j k", "Text."]),
        ("Title\n===\nText.", ["Title > Text."]),
        ("- Item\n---\nText.", ["Item", "Text."]),
        ("1. One\n\n1. Two\n\nText.", ["One", "1. Two > Text."]),
        (
            "# A ##\n\n## B\n\n### C\n\nOne.\n\n## D\n\nTwo.\n\n# E\n\nThree.",
            ["A > B > C > One.", "A > D > Two.", "E > Three."],
        ),
        (
            "you need:\n- a cup\n  - of tea\n- Milk:\n  - cold\n  - warm\n\nNow drink.",
            ["you need > a cup", "you need > of tea", "you need > Milk > cold", "you need > Milk > warm", "Now drink."],
        ),
        ("fees:\n\n| Name | Fee |\n|---|---|\n| Tea | 3 |", ["fees > Tea; Fee: 3"]),
        ("| Name | | Fee |\n| Tea | | 3 |\n| | | |", ["Tea; Fee: 3"]),
        ("| Name |\n|---|\n| Tea |", ["Tea"]),
        ("One\n```\ntwo\n***\nthree\n**four**\nfive", ["One", "two", "three", "four > five"]),
        ("**Bold:** text\nGoes on.", ["Bold: text", "Goes on."]),
        ("lower title\n\nText.", ["lower title", "Text."]),
        ("7 days\n\nText.", ["7 days", "Text."]),
        ("Text.\n\nTitle\n\nMore.", ["Text.", "Title > More."]),
        ("Section 3: Fees\n\nText.", ["Section 3: Fees > Text."]),
        # Lines without full stops that follow each other are sentences; what has no paragraph beneath is no heading.
        ("No pets\nNo smoking\nNo parties", ["No pets", "No smoking", "No parties"]),
        ("No pets\n\nNo smoking\n\nNo parties", ["No pets", "No smoking", "No parties"]),
        ("Text.\n\nNo pets\nNo smoking\n\nText.", ["Text.", "No pets", "No smoking", "Text."]),
        ("Single: 80 euros\nDouble: 120 euros", ["Single: 80 euros", "Double: 120 euros"]),
        ("Rooms:\nSingle: 80\nDouble: 120", ["Rooms: > Single: 80", "Rooms: > Double: 120"]),
        ("Hours\n\nMonday 9 to 5\nSunday 10 to 4", ["Hours > Monday 9 to 5", "Hours > Sunday 10 to 4"]),
        ("No pets\n- Dogs\n- Cats", ["No pets > Dogs", "No pets > Cats"]),
        ("Prices\nItem,Fee\nBoat,20\nBike,5", ["Prices > Boat; Fee: 20", "Prices > Bike; Fee: 5"]),
        ("No pets\n\n# Fees\n\nText.", ["No pets", "Fees > Text."]),
        ("**No pets**\n\n**No smoking**\n\nText.", ["No pets", "No smoking > Text."]),
        ("**No pets.**\n\nText.", ["No pets.", "Text."]),
        ("1. No pets\n\nNo smoking", ["No pets", "No smoking"]),
        (f"No pets\nNo {'very ' * 9}loud music\nNo parties", ["No pets", f"No {'very ' * 9}loud music", "No parties"]),
        (
            "We are open on weekdays, from nine to\nfive, and on Saturdays in May and\nJune from ten to two",
            ["We are open on weekdays, from nine to five, and on Saturdays in May and June from ten to two"],
        ),
        (
            "Rules\nMembers may bring two guests on Saturdays\nand on Sundays, as long as they sign in",
            ["Rules > Members may bring two guests on Saturdays and on Sundays, as long as they sign in"],
        ),
        # A line with a colon is context of items beneath it alone.
        ("We do not ship to:\n\n- Alaska\n\nWe do to Canada.", ["We do not ship to > Alaska", "We do to Canada."]),
        (
            "It includes:\n- lunch\nIt does not include:\n- dinner\n- wine",
            ["It includes > lunch", "It does not include > dinner", "It does not include > wine"],
        ),
        (
            "1. You may bring guests, by this rule:\n2. They sign in.",
            ["You may bring guests, by this rule:", "They sign in."],
        ),
        ("3.5 tonnes are the most.\n3.5 Fees\nText.", ["3.5 tonnes are the most.", "3.5 Fees", "Text."]),
        # What may be an amount, a date or a name is no mark of an item.
        ("1.5 GB of data are free.", ["1.5 GB of data are free."]),
        ("J. Smith is the chair.", ["J. Smith is the chair."]),
        ("Agenda\n\n9.00 Welcome\n9.30 Coffee", ["Agenda > 9.00 Welcome", "Agenda > 9.30 Coffee"]),
        ("12.03.2024 It was sent.\n13.03.2024 It came.", ["12.03.2024 It was sent.", "13.03.2024 It came."]),
        ("It leaves from platform\n3. The bar is open.", ["It leaves from platform 3.", "The bar is open."]),
        ("In it the customers get\n1.5 GB of data.", ["In it the customers get 1.5 GB of data."]),
        ("1. Small plan\n\n1.1 GB of data", ["Small plan", "1.1 GB of data"]),
        ("1.1 GB of data\n1.2 GB of data", ["1.1 GB of data", "1.2 GB of data"]),
        ("2.1 We pay.\n2.2 You\npay.\n2.2.1 Or not.\n3.1 So.", ["We pay.", "You pay.", "Or not.", "So."]),
        ("12) One.\na) two\n(iv) three\nc. four", ["One.", "two", "three", "four"]),
        ("1. One, so.\nIt goes on\n2. Two", ["One, so.", "It goes on", "Two"]),
        # Lines of a list whatever they begin and end with.
        ("Room | Fee\n--- | ---\nBig | 8\nsmall | 5\n\nText.", ["Big; Fee: 8", "small; Fee: 5", "Text."]),
        ("We ask this\nof you.\nRoom | Fee\n--- | ---\nBig | 8", ["We ask this of you.", "Big; Fee: 8"]),
        ("**Adults:** 5 euros\n[Children](a.md) 3 euros", ["Adults: 5 euros", "Children 3 euros"]),
        ("\u00b7 One\n\u25aa two\n\u2192 three\n\u2713 four", ["One", "two", "three", "four"]),
        ("adults: 5 euros;\nchildren: 3 euros;", ["adults: 5 euros;", "children: 3 euros;"]),
        ("adults: 5 euros,\nchildren: 3 euros", ["adults: 5 euros,", "children: 3 euros"]),
        ("Note: we\ncome: so.", ["Note: we come: so."]),
        ("Prices:\nadults: 5\nchildren: 3", ["Prices: > adults: 5", "Prices: > children: 3"]),
        ("Prices:\nadults: 5;\nchildren: 3.", ["Prices: > adults: 5;", "Prices: > children: 3."]),
        ("\u20ac5 adults\n\u20ac3 children", ["\u20ac5 adults", "\u20ac3 children"]),
        ("Soup ..... 5.50\nFish . . . . . 7\nTea......\u20ac2", ["Soup: 5.50", "Fish: 7", "Tea: \u20ac2"]),
        # Marks of quoted lines are no text; before numbers alone they are signs.
        ("> A is so.\n>\n> B is.\n> > C is.", ["A is so.", "B is.", "C is."]),
        ("> 65 years: free\n> 75 years: a gift", ["> 65 years: free", "> 75 years: a gift"]),
        ("\ufeff# Parking\n\nIt is free.", ["Parking > It is free."]),
        ("It is **free.** Come in.", ["It is free.", "Come in."]),
    ],
)
def test_lines_are_what_they_look_like(document: str, texts: list[str]) -> None:
    assert [" > ".join((*headings, text)) for headings, text in said(document)] == texts


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (
            r"It is \-5 degrees, 10\-20 litres, \$5, 5\%, \> 6 m, \#7.",
            "It is -5 degrees, 10-20 litres, $5, 5%, > 6 m, #7.",
        ),
        (r"My\_file\_v2 has \*stars\* and \*\*more\*\* of **them**.", "My_file_v2 has *stars* and **more** of them."),
        (
            r"[See\](here) \[or](here) [not](here) \![it](here) \~~5\~~.",
            "[See](here) [or](here) not !it ~~5~~.",
        ),
        (r"C:\temp stays, \\x is \x.", r"C:\temp stays, \x is \x."),
        (
            "<p class='5'>20 m<sup>2</sup> for <B>7</B> &euro;.<br>x < 5 <c> \\<b>y.</p>",
            "20 m\u00b2 for 7 \u20ac. x < 5 <c> <b>y.",
        ),
        ("It weighs 5 kilo\u00adgrams or\u200b &shy;so.", "It weighs 5 kilograms or so."),
        ("It is &lt; 5&nbsp;kg &#38; &euro;7 &nothing; R&D; \\&lt;.", "It is < 5 kg & \u20ac7 &nothing; R&D; &lt;."),
    ],
)
def test_a_mark_that_is_none_is_a_character(written: str, read: str) -> None:
    assert [text for _, text in said(written)] == [read]


def test_lines_of_code_are_no_headings() -> None:
    code = "```sh\n# The limit is 5.\nRun it\n---\n```"
    assert said(f"# One\n\n## Two\n\n{code}\n\nIt is so.") == [
        (("One", "Two"), "# The limit is 5."),
        (("One", "Two"), "Run it"),
        (("One", "Two"), "It is so."),
    ]
    assert said("```\nOpen.\n\n# One\n\nIt is so.") == [((), "Open."), (("One",), "It is so.")]
    assert said("```It is 5 euros.```\n\n# One\n\n~~~ x\n# a\n```\n~~~~") == [
        ((), "It is 5 euros."),
        (("One",), "# a"),
    ]


def test_items_of_a_list_are_no_rows_of_a_table() -> None:
    assert said("- Tea;coffee\n- Milk; 5 euros") == [((), "Tea;coffee"), ((), "Milk; 5 euros")]


def test_a_bar_within_a_cell_is_none_between_cells() -> None:
    table = "| Dish | Price |\n|---|---|\n| Soup \\| bread | \\$5 |"
    assert said(table) == [((), "Soup | bread; Price: $5")]


@pytest.mark.parametrize(
    ("longest", "longer"),
    [
        ("A" * 70 + "\n\nText.", "A" * 71 + "\n\nText."),
        ("A" * 50 + "\nText.", "A" * 51 + "\nText."),
        (f"**{'a' * 66}**\nText.", f"**{'a' * 67}**\nText."),
        (f"Text.\n**{'a' * 66}**\nText.", f"Text.\n**{'a' * 67}**\nText."),
        ("Title" + "\n" * 8 + "Text.", "Title" + "\n" * 9 + "Text."),
    ],
)
def test_a_heading_without_markup_is_short_and_near(longest: str, longer: str) -> None:
    assert [bool(sentences_in(document)[-1].headings) for document in (longest, longer)] == [True, False]


def test_a_long_sentence_is_cut_and_nothing_of_it_is_lost() -> None:
    document = " ".join(f"word{n}" for n in range(400))
    parts = sentences_in(document)
    assert len(parts) > 1
    assert max(len(each.text) for each in parts) <= LONGEST
    assert " ".join(each.text for each in parts) == document
    assert "".join(each.text for each in sentences_in("x" * 1300)) == "x" * 1300


def test_a_long_sentence_is_cut_at_white_space_of_its_second_half_alone() -> None:
    early, late = "x" * (LONGEST // 2 - 10), "y" * LONGEST
    first, *_ = sentences_in(f"{early} {late}")
    assert len(first.text) == LONGEST


def test_of_a_long_line_above_a_list_nothing_is_lost() -> None:
    short, long = (f"{'Guests pay ' + 'more ' * times}for:" for times in (20, 30))
    assert said(f"{short}\n\n- food") == [((short[:-1],), "food")]
    assert said(f"{long}\n\n- food") == [((), long), ((long[:119],), "food")]


def test_a_model_reads_the_last_two_headings_each_cut() -> None:
    (last,) = sentences_in("# One\n\n## Two\n\n### " + "three " * 100 + "\n\nText.")
    assert len(last.headings) == 3
    assert context_of(last, " > ").startswith("Two > three ")
    assert len(context_of(last, " > ")) < 200


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        (
            "He said \u201cStop!\u201d Then (he ran.) 3 dogs followed\u2026 Really?!",
            ["He said \u201cStop!\u201d", "Then (he ran.)", "3 dogs followed\u2026", "Really?!"],
        ),
        (
            "Dr. J. Smith of the U.S. Army came at 5 p.m. Monday.",
            ["Dr. J. Smith of the U.S. Army came at 5 p.m. Monday."],
        ),
        ("So do I. They too.", ["So do I.", "They too."]),
        ("At most 16 A. Items may be 5 m. 3 p.m. is late.", ["At most 16 A.", "Items may be 5 m.", "3 p.m. is late."]),
        ("It cost 3.5 dollars. See example.com. for more", ["It cost 3.5 dollars.", "See example.com. for more"]),
        ("A title\n\nA line\nand its end.\n \nMore", ["A title", "A line and its end.", "More"]),
        (
            "Max. 5 guests incl. 7 % VAT in room no. 5 pay min. \u20ac90. No. 7 is closed. He said no. So it is.",
            [
                "Max. 5 guests incl. 7 % VAT in room no. 5 pay min. \u20ac90.",
                "No. 7 is closed.",
                "He said no.",
                "So it is.",
            ],
        ),
        ("It takes 5 min. 3 may go on Mon. 5 May.", ["It takes 5 min.", "3 may go on Mon. 5 May."]),
        ("We sat. 5 people came.", ["We sat.", "5 people came."]),
        ("So.[1][2] But.\u00b9 Of [0.5] Or", ["So.[1][2]", "But.\u00b9", "Of [0.5] Or"]),
        ("  spaces \t here.  Next  ", ["spaces here.", "Next"]),
        ("\u201cQuoted.\u201d \u201cAgain.\u201d", ["\u201cQuoted.\u201d", "\u201cAgain.\u201d"]),
        ("", []),
        (" \n\n\t ", []),
    ],
)
def test_sentences_end_by_the_rule(text: str, sentences: list[str]) -> None:
    found = [text[start:end].split() for start, end in spans_of(text)]
    assert [" ".join(words) for words in found] == sentences
    assert [word for words in found for word in words] == text.split()


def test_what_has_no_visible_character_is_left_out() -> None:
    document = "Dogs bark.\n\n\u200b\n\n- \u200b\n- \u0301\u0301\n\nCats meow."
    assert [each.text for each in sentences_in(document)] == ["Dogs bark.", "Cats meow."]


def test_what_many_sentences_repeat_is_short() -> None:
    table = "x\t" + "\U0001f600" * 50_000 + "\n" + "a\t5\n" * 5500
    rows = sentences_in(table)
    assert len(rows) == 5500
    assert sum(len(each.text) for each in rows) < 5 * len(table)
    assert rows[0].text == "a; " + "\U0001f600" * 60 + ": 5"
    (under,) = sentences_in("# " + "long " * 40_000 + "\n\nIt is so.")
    assert [len(title) for title in under.headings] == [120]


def test_a_long_row_is_cut() -> None:
    rows = sentences_in("a\t1\n" + "cell\t" * 1000 + "\n")
    assert len(rows) > 2
    assert max(len(each.text) for each in rows) <= LONGEST
    assert " ".join(each.text for each in rows).count("cell") == 1000
