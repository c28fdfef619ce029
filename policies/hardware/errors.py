"""What the tables of facts refuse, and the closest valid name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import final

from policies.errors import InputError


@final
class HardwareError(InputError):
    """A shape, zone, disk type or quota that the tables do not have."""


def closest(value: str, choices: Iterable[str]) -> str | None:
    """The choice that looks most like `value`, letter case aside; None where none is near."""
    known = {choice.casefold(): choice for choice in choices}
    found = difflib.get_close_matches(value.casefold(), known, n=1, cutoff=0.5)
    return known[found[0]] if found else None


def hint(value: str, choices: Iterable[str]) -> str:
    """` Did you mean X?`, or nothing where no choice is near."""
    found = closest(value, choices)
    return f" Did you mean {found}?" if found else ""
