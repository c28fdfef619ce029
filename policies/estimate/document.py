"""Reads a `spotrail.estimate/1` back: an estimate that was kept is compared with another one, not priced again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NoReturn, final

from policies.errors import InputError
from policies.estimate.model import CostComponent, Estimate, Freshness, ResourceEstimate, UnknownInput, Unpriced
from policies.money import Amount, plain
from policies.resources import Resource

SCHEMA: Final = "spotrail.estimate/1"
_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
ROUNDING: Final = Decimal("0.000001")
"""A component is kept to 12 places, where a month of it has no exact decimal; the total is that of the exact parts."""
GONE: Final = "delete"
"""The op of an entry that will not stand."""


def is_estimate(text: bytes) -> bool:
    """Whether `text` may be an estimate: it names the schema."""
    return SCHEMA.encode() in text


def parse_estimate(text: bytes, place: str) -> Estimate:
    """The stack as it will stand, by the estimate in `text`. Raises InputError naming `place`, the field and the rule.

    The age of a price is not kept with each component: where the whole is not fresh, every price counts as undated.
    """
    try:
        document = json.loads(text.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: is no {SCHEMA}: {error}") from None
    return _Document(place).estimate(document)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


@final
class _Document:
    """One file: where each of its values is said to be."""

    def __init__(self, place: str) -> None:
        self._place = place

    def estimate(self, document: Any) -> Estimate:
        top = self._mapping(document, "")
        if top.get("schema") != SCHEMA:
            self._refuse("schema", top.get("schema"), f"{SCHEMA!r}")
        fresh = self._flag(top, "fresh", "")
        resources = tuple(
            self._resource(entry, f"resources[{place}]", Freshness.FRESH if fresh else Freshness.UNDATED)
            for place, entry in enumerate(self._list(top, "resources", ""))
            if self._mapping(entry, f"resources[{place}]").get("op") != GONE
        )
        found = Estimate(currency=self._text(top, "currency", ""), resources=resources)
        twice = [urn for urn, number in Counter(each.resource.urn for each in resources).items() if number > 1]
        if twice:
            raise InputError(f"{self._place}: resources has {twice[0]} twice; a URN is unique in a stack")
        self._check_total(top, found)
        return found

    def _check_total(self, top: Mapping[str, Any], found: Estimate) -> None:
        if top.get("monthly") is None and not found.nothing_known:
            raise InputError(
                f"{self._place}: has no total: the preview that it was made from hides unchanged resources.\n"
                "  Make it from `pulumi preview --json --show-sames`, or from a state file."
            )
        if top.get("monthly") is None:
            return
        if abs(self._number(top, "monthly", "") - found.amount.monthly) > ROUNDING:
            self._refuse("monthly", top["monthly"], f"the sum of the components, {plain(found.amount.monthly)}")

    def _resource(self, entry: Any, at: str, freshness: Freshness) -> ResourceEstimate:
        urn = self._text(entry, "urn", at)
        return ResourceEstimate(
            resource=Resource(urn=urn, type=self._text(entry, "type", at), name=self._text(entry, "name", at)),
            location=self._text(entry, "location", at),
            components=tuple(
                self._component(part, f"{at}.components[{place}]", freshness)
                for place, part in enumerate(self._list(entry, "components", at))
            ),
            unknown=tuple(
                UnknownInput(path=self._text(part, "path", at), reason=self._text(part, "reason", at))
                for part in self._list(entry, "unknown", at)
            ),
            unpriced=tuple(
                self._unpriced(part, f"{at}.unpriced[{place}]")
                for place, part in enumerate(self._list(entry, "unpriced", at))
            ),
        )

    def _unpriced(self, part: Any, at: str) -> Unpriced:
        counted = self._mapping(part, at).get("quantity") is not None
        return Unpriced(
            item=self._text(part, "item", at),
            reason=self._text(part, "reason", at),
            quantity=self._number(part, "quantity", at) if counted else None,
            unit=self._text(part, "unit", at),
        )

    def _component(self, part: Any, at: str, freshness: Freshness) -> CostComponent:
        return CostComponent(
            name=self._text(part, "name", at),
            item=self._text(part, "item", at),
            quantity=self._number(part, "quantity", at),
            unit=self._text(part, "unit", at),
            unit_price=self._number(part, "unit_price", at),
            amount=Amount.by_month(self._number(part, "monthly", at)),
            freshness=freshness,
            note=self._text(part, "note", at),
        )

    def _mapping(self, value: Any, at: str) -> Mapping[str, Any]:
        return value if isinstance(value, dict) else self._refuse(at or "the document", value, "an object")

    def _list(self, entry: Any, key: str, at: str) -> list[Any]:
        value = self._mapping(entry, at).get(key)
        return value if isinstance(value, list) else self._refuse(_path(at, key), value, "a list")

    def _text(self, entry: Any, key: str, at: str) -> str:
        value = self._mapping(entry, at).get(key)
        return value if isinstance(value, str) else self._refuse(_path(at, key), value, "text")

    def _flag(self, entry: Any, key: str, at: str) -> bool:
        value = self._mapping(entry, at).get(key)
        return value if isinstance(value, bool) else self._refuse(_path(at, key), value, "true or false")

    def _number(self, entry: Any, key: str, at: str) -> Decimal:
        value = self._text(entry, key, at)
        return Decimal(value) if _NUMBER.fullmatch(value) else self._refuse(_path(at, key), value, "a decimal number")

    def _refuse(self, path: str, value: Any, rule: str) -> NoReturn:
        shown = json.dumps(value, ensure_ascii=False)
        raise InputError(f"{self._place}: {path} is {shown[:60]}; in a {SCHEMA} it must be {rule}")


def _path(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key
