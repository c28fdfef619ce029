"""The stack that somebody asks for, and whether what was read is of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

from policies.changes import Reading
from policies.errors import InputError
from policies.readers.errors import ReadError
from policies.readers.states import parts_of

FORMS: Final = "a name (dev), or as Pulumi writes it in full (organization/project/dev)"
_NAME: Final = re.compile(r"(?:[^/\s]+/(?:(?P<project>[^/\s]+)/)?)?(?P<stack>[^/\s]+)")


@final
@dataclass(frozen=True, kw_only=True)
class StackName:
    """A stack as a command line names it. A file does not know its organization, so that is not compared."""

    text: str
    """As it was given."""
    stack: str
    project: str = ""
    """Empty for any project."""

    def names(self, project: str, stack: str) -> bool:
        """Whether it is the name of that stack."""
        return self.stack == stack and self.project in ("", project)


def parse_stack_name(text: str) -> StackName:
    """A name as `pulumi --stack` takes it. Raises InputError."""
    found = _NAME.fullmatch(text)
    if found is None:
        raise InputError(f'"{text}" is no name of a stack; it is {FORMS}')
    return StackName(text=text, stack=found["stack"], project=found["project"] or "")


def require(wanted: StackName | None, project: str, stack: str, place: str) -> None:
    """Raise InputError where the stack that was read from `place` is not the one that is wanted, if any is."""
    if wanted is not None and not wanted.names(project, stack):
        raise InputError(f"{place}: {_what(project, stack)}; --stack asks for {wanted.text}")


def chosen(readings: Sequence[Reading], wanted: StackName | None, place: str) -> Reading:
    """The reading of the wanted stack; without one wanted, the only one there is. Raises ReadError."""
    if wanted is None:
        return readings[0]
    found = [each for each in readings if wanted.names(each.project, each.stack)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ReadError(f"{place}: {len(found):,} documents are of the stack {wanted.text}; give one of them")
    there = dict.fromkeys(_what(each.project, each.stack) for each in readings)
    raise ReadError(f"{place}: {', '.join(there)}; --stack asks for {wanted.text}")


def refuse_two_stacks(urns: Iterable[str], place: str) -> None:
    """Raise ReadError where the resources of one document are of several stacks: their sum is the price of none."""
    own = ""
    for urn in urns:
        if not own:
            own = "::".join(urn.split("::", 2)[:2])
        if not urn.startswith(f"{own}::"):
            one, two = (parts_of(each) for each in (f"{own}::x::x", urn))
            names = " and ".join(f"{each.project}/{each.stack}" for each in (one, two) if each)
            raise ReadError(f"{place}: its resources are of two stacks ({names}); give one stack at a time")


def _what(project: str, stack: str) -> str:
    return f"it is of the stack {project}/{stack}" if stack else "it does not say of which stack it is"
