"""Strict reading of one part of a stack file: every key known, every value of its type and in its range.

A getter that finds a mistake notes it and returns a stand-in, so that one run finds all mistakes of the file.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields
from decimal import Decimal
from typing import Any, Final, TypeAlias, TypeVar, final

from infra.settings.mistakes import MISSING, Mistakes
from policies.errors import InputError

SECRET_TEXT: Final = "[secret]"
"""What an encrypted value reads as where nobody can decrypt it."""

Rule: TypeAlias = Callable[[str], str | None]
"""What is wrong with a text, or None."""
Choice = TypeVar("Choice", bound=enum.Enum)
StandIn = TypeVar("StandIn")


@final
class Section:
    """One mapping of the file, read into the dataclass `kind`: its fields are the keys, its defaults the defaults."""

    def __init__(
        self,
        mistakes: Mistakes,
        path: str,
        values: object,
        kind: type[Any],
        *,
        not_keys: Iterable[str] = (),
        more_keys: Iterable[str] = (),
        hints: Mapping[str, str] | None = None,
    ) -> None:
        """`not_keys` are fields that are no keys, `more_keys` keys that are no fields; `hints` say what to write
        instead of a key that people try."""
        self.mistakes = mistakes
        self.path = path
        self._defaults = {entry.name: entry.default for entry in fields(kind) if entry.default is not NO_DEFAULT}
        self._values: Mapping[str, object] = {}
        known = [*(entry.name for entry in fields(kind) if entry.name not in set(not_keys)), *more_keys]
        if isinstance(values, Mapping):
            self._values = values
            self._refuse_unknown(known, hints or {})
        elif values == SECRET_TEXT:
            mistakes.add(path, values, secret_rule())
        else:
            mistakes.add(path, values, f"It must be a mapping with the keys {', '.join(known)}.")
        self._is_mapping = isinstance(values, Mapping)

    def at(self, key: str) -> str:
        """The full path of `key`."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Whether the file gives `key`."""
        return key in self._values

    def raw(self, key: str) -> object:
        """The value as it stands in the file; MISSING where it does not."""
        return self._values.get(key, MISSING)

    def part(self, key: str, kind: type[Any], *, hints: Mapping[str, str] | None = None) -> Section:
        """The mapping at `key`; an absent one is empty."""
        return Section(self.mistakes, self.at(key), self._values.get(key, {}), kind, hints=hints)

    def text(self, key: str, rule: Rule | None = None, *, default: str | None = None) -> str:
        """Text that `rule` has nothing against. `default` replaces the dataclass's, for one that depends on others."""
        value, given = self._value(key, "", default)
        if not given:
            return str(value)
        if not isinstance(value, str):
            way_out = "" if isinstance(value, list | Mapping) else '; put it between quotes: "..."'
            return self._wrong(key, value, f"It must be text{way_out}.", "")
        broken = rule(value) if rule else None
        return value if broken is None else self._wrong(key, value, broken, "")

    def integer(self, key: str, least: int, most: int, unit: str = "") -> int:
        """A whole number from `least` to `most`; 1200.0 is whole."""
        value, given = self._value(key, least)
        if not given:
            return int(value)
        number = whole(value)
        span = f"{least:,} to {most:,}{f' {unit}' if unit else ''}"
        if number is None:
            return self._wrong(key, value, f"It must be a whole number, {span}.", least)
        return number if least <= number <= most else self._wrong(key, value, f"It must be {span}.", least)

    def one_of(self, key: str, allowed: Sequence[int]) -> int:
        """One of a few whole numbers."""
        value, given = self._value(key, allowed[0])
        number = whole(value)
        if not given or number in allowed:
            return int(value)
        return self._wrong(key, value, f"It must be one of {', '.join(map(str, allowed))}.", allowed[0])

    def flag(self, key: str) -> bool:
        """True or false."""
        value, given = self._value(key, False)
        if not given or isinstance(value, bool):
            return bool(value)
        return self._wrong(key, value, "It must be true or false, without quotes.", False)

    def choice(self, key: str, kind: type[Choice]) -> Choice:
        """A member of `kind` by its value."""
        names = [str(member.value) for member in kind]
        first = next(iter(kind))
        value, given = self._value(key, first)
        if not given:
            return kind(value)
        if isinstance(value, str) and value in names:
            return kind(value)
        rule = f"It must be one of {', '.join(names)}.{did_you_mean(value, names)}"
        return self._wrong(key, value, rule, first)

    def texts(self, key: str, rule: Rule | None = None, *, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts, none twice."""
        value, given = self._value(key, (), default)
        if not given:
            return tuple(value)
        if not isinstance(value, list):
            return self._wrong(key, value, "It must be a list: [a, b].", ())
        for index, item in enumerate(value):
            broken = rule(item) if rule and isinstance(item, str) else None
            if not isinstance(item, str) or broken:
                self.mistakes.add(f"{self.at(key)}[{index}]", item, broken or "It must be text.")
            elif item in value[:index]:
                self.mistakes.add(f"{self.at(key)}[{index}]", item, "It stands in the list twice.")
        return tuple(item for item in value if isinstance(item, str))

    def fractions(self, key: str, least: Decimal, most: Decimal) -> tuple[Decimal, ...]:
        """A list of numbers from `least` to `most`, none twice, in rising order."""
        value, given = self._value(key, ())
        if not given:
            return tuple(value)
        rule = f"It must be a list of numbers from {least} to {most}, each once: [0.5, 1]."
        if not isinstance(value, list):
            return self._wrong(key, value, rule, ())
        found = [number for item in value if (number := exact(item)) is not None and least <= number <= most]
        if len(set(found)) != len(value):
            return self._wrong(key, value, rule, ())
        return tuple(sorted(found))

    def _value(self, key: str, stand_in: Any, default: Any = None) -> tuple[Any, bool]:
        """The value and whether it came from the file; else the default, else `stand_in` and a mistake."""
        if key in self._values:
            value = self._values[key]
            if value is not None and value != SECRET_TEXT:
                return value, True
            rule = "Give it a value, or leave the key out." if value is None else secret_rule()
            self.mistakes.add(self.at(key), value, rule)
            return stand_in, False
        if default is not None:
            return default, False
        if key in self._defaults:
            return self._defaults[key], False
        if self._is_mapping:
            self.mistakes.add(self.at(key), MISSING, "It is needed and has no default.")
        return stand_in, False

    def _wrong(self, key: str, value: object, rule: str, stand_in: StandIn) -> StandIn:
        self.mistakes.add(self.at(key), value, rule)
        return stand_in

    def _refuse_unknown(self, known: list[str], hints: Mapping[str, str]) -> None:
        for key, value in self._values.items():
            if key in known:
                continue
            advice = f" {hints[key]}" if key in hints else did_you_mean(key, known)
            self.mistakes.add(self.at(key), value, f"There is no such key. Keys: {', '.join(known)}.{advice}")


def passes(check: Callable[[str], object]) -> Rule:
    """A rule out of a check that raises InputError."""

    def rule(value: str) -> str | None:
        try:
            check(value)
        except InputError as error:
            said = str(error)
            return said if said.endswith((".", "?")) else f"{said}."
        return None

    return rule


def whole(value: object) -> int | None:
    """`value` as a whole number; None where it is none. Booleans and text are no numbers."""
    number = exact(value)
    return int(number) if number is not None and number == number.to_integral_value() else None


def exact(value: object) -> Decimal | None:
    """`value` as an exact number; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    number = Decimal(value)
    return number if number.is_finite() else None


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """` Did you mean X?`, or nothing where no key is near."""
    near = difflib.get_close_matches(str(value).lower(), list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]}?" if near else ""


def secret_rule() -> str:
    """Why a setting cannot be encrypted."""
    return (
        "It is encrypted. spotrail has to know it before the apply, to price and check it: set it without --secret.\n"
        "Only spotrail:slack_token may be a secret."
    )
