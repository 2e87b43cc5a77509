"""Texts that no reader of amounts, dates, days or words may fail at."""

from hypothesis import strategies as st

# More digits than `int` reads, at once, in groups, in decimals and in parts; and what still is a number.
DIGITS = ("5", "12", "345", "2024", "9" * 31, "9" * 4400, f"1{',000' * 1500}", f"1{'.000' * 1500}", f"0.{'9' * 4400}")
PLACES = (
    *("{}", "{} kg", "$ {}", "12 345.{} g", "12 {}", "1 {} 000", "{},{}", "{} million", "{}k", "-{} %", "minus {}"),
    *(
        "Version 1.{}.3",
        "Version {}",
        "Version 17",
        "1.2.{}",
        "v{}.1",
        "section {}.{}.1,2.2",
        "no. {}",
        "KB-{}",
        "{}XL",
    ),
    *("3.5.{}", "{}.5.2024", "{}/5/2024", "2024-{}-05", "3 May {}", "May {}", "{} May", "the {}st", "twenty-{}th"),
    *("{}:30", "5:{} pm", "{}.30 am", "9 am to {} pm", "5 to {} days", "{}-{} kg", "between {} and {}", "{}/{} days"),
    *("1/{} inch", "{} 1/2 inch", "{}/2", "{}\u00bd", "{} ft {} in", "{}h{}", "1 m {}", "{} out of {}", "{} in {}"),
    *("at least {}", "up to {} or more", "size {} XL", "{}x{}", "{} {} g", "\u20ac{} and {} cents", "{}\u00b0C"),
    *(
        "open Sun to Mon",
        "Sat-Sun",
        "Mon to Fri",
        "on Tue",
        "Tuesdays",
        "weekends",
        "kilos",
        "minus six",
        "twice a week",
    ),
    *("first", "six inches", "5 kg", "is - 5", "5 miles", "size S", "no kids", "switch it on", "it rose by six"),
)
# Letters that fold to others, or to two, or that only case-insensitive patterns take for them.
FOLDED = [str.maketrans(each) for each in ({}, {"s": "\u017f", "k": "\u212a"}, {"i": "\u0131"}, {"i": "\u0130"})]
FOLDED += [str.maketrans(each) for each in ({"s": "\u00df"}, {"f": "\ufb01"}, {"S": "\u1e9e", "K": "\u212a"})]

_PLACED = st.tuples(st.sampled_from(PLACES), st.sampled_from(DIGITS)).map(lambda each: each[0].replace("{}", each[1]))
HOSTILE = st.tuples(st.lists(_PLACED, max_size=4).map(" ".join), st.sampled_from(FOLDED)).map(
    lambda each: each[0].translate(each[1])
)
