"""What numbers of a text measure."""

from core import currencies, units
from core.dates import Found
from core.numerals import Tokens
from core.units import Unit, rate


class Measures(Tokens):
    """Reads currencies before numbers, and units behind them."""

    def _currency(self, i: int) -> tuple[int, str]:
        """The token after a currency, and its name; empty where none stands there."""
        if self.word(i) in currencies.DOLLARS and self.word(i + 1) == "$" and self.glued(i + 1):
            return i + 2, currencies.DOLLARS[self.word(i)]
        money = currencies.MONEY.get(self.word(i), "")
        return i + bool(money), money

    def _unit(self, i: int, money: str) -> tuple[Unit, int]:
        """The unit after a number, and the token after it."""
        if money:
            again = currencies.MONEY.get(self.word(i)) == money and not self.word(i + 1)[:1].isdecimal()  # no next $12
            return Unit("money", name=money), i + again
        start = i
        if self.word(i) == "-" and self.glued(i) and self.glued(i + 1):
            i += 1
        if self.word(i) in units.ADJECTIVES and not self.glued(i):
            i += 1
        word = self.word(i)
        if word == "st" and (more := self.number(i + 1)) and self.word(more[1]) in ("lb", "lbs"):
            return units.UNITS["stone"], i + 1  # 12 st 4 lb
        if phrase := self.phrase(i):
            return phrase
        if word in ("\u00b0", "degree", "degrees") and self.word(i + 1) in ("c", "f", "celsius", "fahrenheit"):
            return (units.CELSIUS if self.word(i + 1)[0] == "c" else units.FAHRENHEIT), i + 2
        if word in units.EITHER:
            return Unit(word.removesuffix("s")), i + 1
        power = units.POWERS.get(word, 0)
        i += power > 0 and 1 + (self.word(i + 1) == ".")  # sq. ft.
        unit = units.CASED.get(self.written[i]) if self.word(i) else None
        unit = unit or units.UNITS.get(self.word(i))
        letter = len(word) == 1 and word.isascii() and word.isalpha()
        if unit is None or (letter and self.written[i] not in units.LETTERS) or (power and unit.kind != "m"):
            return Unit("number"), start
        if not power and unit.kind == "m" and self.word(i + 1) in ("2", "3") and self.glued(i + 1):
            i, power = i + 1, int(self.word(i + 1))
        if power:
            return Unit(f"m{power}", unit.factor**power), i + 1
        hours = i + 1 + (self.word(i + 1) == "-" and self.glued(i + 1) and self.glued(i + 2))
        if unit.kind in units.BY_THE_HOUR and self.word(hours) in ("hour", "hours"):
            return Unit(units.BY_THE_HOUR[unit.kind], unit.factor), hours + 1
        return unit, i + 1

    def _ends(self, i: int, unit: Unit) -> bool:
        """Whether a number with its unit ends before a token: "603XL" is no number, nor "0042-A"."""
        if not self.glued(i):
            return True
        if self.word(i) == "-" and unit.kind == "number" and self.glued(i + 1):
            return self.word(i + 1) not in units.ORDINALS and not (
                self.written[i + 1].isupper() and len(self.written[i + 1]) <= 3
            )
        return not self.word(i)[:1].isalnum() or (unit.kind == "number" and self.word(i) in units.COUNTS)

    def _rated(self, found: Found) -> Found:
        """An amount, or what of it is for each of something: 5 GB per month, 38 hours a week, 100 km/h, 10 mg daily."""
        per = self._per(found[1]) if found and all(fact.kind in units.RATED for fact in found[0]) else None
        return ([rate(fact, per[0]) for fact in found[0]], per[1]) if found and per else found

    def _per(self, i: int) -> tuple[Unit, int] | None:
        """What an amount is for each of, and the token after it."""
        word, after = self.word(i), self.word(i + 1)
        if word in units.PERIODS and word.endswith("ly"):
            return units.PERIODS[word], i + 1
        period = after in units.SPANS or after == "second"
        each = word in units.OFTEN and period and self.word(i + 2) not in ("ago", "later", "earlier")
        if not (each or word == "per" or (word == "/" and (period or self.glued(i + 1)))):
            return None
        unit, end = self._unit(i + 1, "")
        if unit.kind == "number":  # 100 MB/S
            unit, end = units.UNITS.get(after, unit), i + 2
        return (unit, end) if unit.kind in units.RATED else None
