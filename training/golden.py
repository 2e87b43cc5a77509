"""The sentences every published model is asked at publication, at start-up and by the tests. Ours, from no corpus."""

GOLDEN_TEXTS: tuple[tuple[str, str], ...] = (
    ("A man is playing a guitar.", "Someone plays an instrument."),
    ("The cat sleeps on the sofa.", "The cat sleeps on the sofa."),
    ("The cat sleeps on the sofa.", "Interest rates rose for the third time this year."),
    ("How do I reset my password?", "I forgot my password, how can I change it?"),
    ("The museum isn't open on Mondays.", "The museum is open on Mondays."),
    ("Two dogs are running through the snow.", "There is no dog running through the snow."),
    ("caf\u00e9 \u2014 \u201cna\u00efve\u201d", 'cafe - "naive"'),
    ("\u732b\u304c\u597d\u304d", "\U0001f600 zzyzxq"),
    ("word " * 600, "word"),
)
