"""Remarks of a reader: one sentence for all resources that it is true of, however many there are."""

from __future__ import annotations

from typing import Final, final

SHOWN: Final = 5
"""Names that one note lists."""


@final
class Notes:
    """Collects remarks in the order in which each is first made."""

    def __init__(self) -> None:
        self._subjects: dict[str, list[str]] = {}

    def add(self, remark: str, *subjects: str) -> None:
        """`remark` holds, for `subjects` where it is about resources."""
        self._subjects.setdefault(remark, []).extend(subjects)

    def written(self) -> tuple[str, ...]:
        """`a, b and 3 more: remark`, one text a remark."""
        return tuple(f"{_listed(names)}: {remark}" if names else remark for remark, names in self._subjects.items())


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")
