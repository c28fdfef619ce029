"""Finds the priced things: every module of `policies.estimate.priced` that has a `PRICED`."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import final

from policies.estimate import priced
from policies.estimate.market import Market
from policies.estimate.model import OneOff, ResourceEstimate
from policies.resources import Resource


def _nothing(resource: Resource, market: Market) -> Iterable[OneOff]:
    return ()


@final
@dataclass(frozen=True, kw_only=True)
class Priced:
    """How the resources of some types get their price."""

    types: tuple[str, ...]
    """Type tokens; a token belongs to one Priced only."""
    price: Callable[[Resource, Market], ResourceEstimate]
    """The monthly bill of one resource. Raises ResourceError for an input that cannot be what it says."""
    one_off: Callable[[Resource, Market], Iterable[OneOff]] = _nothing
    """What the resource costs once, outside the monthly bill."""


@cache
def priced_types() -> Mapping[str, Priced]:
    """Every type token that has a price, with its Priced. Raises ValueError where two modules claim one type."""
    found: dict[str, Priced] = {}
    for module in pkgutil.iter_modules(priced.__path__):
        entry: Priced = import_module(f"{priced.__name__}.{module.name}").PRICED
        for token in entry.types:
            if token in found:
                raise ValueError(f"{token} is priced twice; the second time by {module.name}")
            found[token] = entry
    return MappingProxyType(found)
