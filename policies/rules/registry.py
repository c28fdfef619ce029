"""Which rules there are: every module of this package that has a `RULE`."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

import policies.rules
from policies.errors import InputError
from policies.rules.model import Rule


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by its id, in the order of the ids. Raises ValueError where two files claim one id."""
    found: dict[str, Rule] = {}
    for info in pkgutil.iter_modules(policies.rules.__path__):
        module = import_module(f"policies.rules.{info.name}")
        candidate = getattr(module, "RULE", None)
        if not isinstance(candidate, Rule):
            continue
        if candidate.id in found:
            raise ValueError(f"{module.__name__}: the rule id {candidate.id} is taken; ids are unique")
        found[candidate.id] = candidate
    return MappingProxyType(dict(sorted(found.items())))


def rule(name: str) -> Rule:
    """The rule of that id. Raises InputError with the closest id otherwise."""
    known = rules()
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.5)
    advice = f"Did you mean {close[0]}?" if close else f"Rules: {', '.join(known)}."
    raise InputError(f'no rule has the id "{name}". {advice}')
