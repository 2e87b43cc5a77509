"""How currencies are written."""

CURRENCIES = {
    "\u20ac": "\u20ac eur euro euros", "$": "$ usd dollar dollars", "\u00a3": "\u00a3 gbp sterling quid",
    "\u00a5": "\u00a5 jpy yen", "\u20b9": "\u20b9 inr rupee rupees", "\u20bd": "\u20bd rub ruble rubles rouble roubles",
    "sek": "sek krona kronor", "pln": "pln zloty zlotys", "chf": "chf", "nok": "nok", "dkk": "dkk",
    "cny": "cny yuan renminbi rmb", "aud": "aud", "cad": "cad", "nzd": "nzd", "hkd": "hkd", "sgd": "sgd", "brl": "brl",
    "mxn": "mxn", "zar": "zar",
}  # fmt: skip
MONEY = {word: name for name, words in CURRENCIES.items() for word in words.split()}
# Letters before a dollar sign, and the currency.
DOLLARS = {
    "us": "$",
    "a": "aud",
    "au": "aud",
    "c": "cad",
    "ca": "cad",
    "nz": "nzd",
    "hk": "hkd",
    "s": "sgd",
    "r": "brl",
}
# Currencies of several words, with those before the last one: US dollars.
OF_COUNTRIES = {
    (*country.split(), unit): name
    for name, units, countries in (
        ("$", "dollar dollars", "us,u . s .,american"),
        ("aud", "dollar dollars", "australian"),
        ("cad", "dollar dollars", "canadian"),
        ("nzd", "dollar dollars", "new zealand"),
        ("hkd", "dollar dollars", "hong kong"),
        ("sgd", "dollar dollars", "singapore"),
        ("chf", "franc francs", "swiss"),
        ("\u00a3", "pound pounds", "british"),
        ("\u00a5", "yen", "japanese"),
        ("\u20b9", "rupee rupees", "indian"),
        ("\u20bd", "ruble rubles rouble roubles", "russian"),
        ("cny", "yuan", "chinese"),
        ("sek", "krona kronor", "swedish"),
        ("nok", "krone kroner", "norwegian"),
        ("dkk", "krone kroner", "danish"),
        ("pln", "zloty zlotys", "polish"),
        ("brl", "real reais", "brazilian"),
        ("mxn", "peso pesos", "mexican"),
        ("zar", "rand rands", "south african"),
    )
    for country in countries.split(",")
    for unit in units.split()
} | {("pounds", "sterling"): "\u00a3", ("pound", "sterling"): "\u00a3"}
MAX_WORDS = max(map(len, OF_COUNTRIES))
