"""Where a quantity meets its price: the one place that looks up the book and makes a line of the bill."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final, NamedTuple, TypeAlias, final

from policies.estimate.model import CostComponent, Freshness, ResourceEstimate, UnknownInput, Unpriced
from policies.money import Amount
from policies.prices.book import Confidence, MissingPrice, Price, PriceBook, PriceModel
from policies.resources import Opaque, Resource, ResourceSet, Value, dotted, texts
from policies.usage import ResourceUsage, Usage

Part: TypeAlias = CostComponent | Unpriced | UnknownInput | str
"""What the price of a resource is made of; text is a note."""

ADDRESS_TYPES: Final = ("gcp:compute/address:Address", "gcp:compute/globalAddress:GlobalAddress")
KEPT_LINES: Final = 8192
"""Distinct lines of a bill that are kept to be used again."""
HOURLY: Final = frozenset({"chip-hour", "vCPU-hour", "GiB-hour", "IP-hour", "VM-hour", "hour"})
"""Units that bill while a thing runs. The others bill by the month: for what exists, or for what was used in it."""


@final
class _Wanted(NamedTuple):
    """What is to be priced, but for the words about it."""

    item: str
    quantity: Decimal
    unit: str
    location: str
    model: PriceModel
    share: tuple[int, int]
    """Numerator and denominator, which are told from others faster than a fraction."""


@final
class _Figures(NamedTuple):
    """What a quantity costs by the book."""

    unit_price: Decimal
    amount: Amount
    freshness: Freshness
    as_of: datetime.date | None
    doubt: str
    """The reason behind a doubt; empty where there is none."""


@final
@dataclass(frozen=True, kw_only=True)
class Market:
    """Everything that a price rests on beside the resource itself."""

    resources: ResourceSet
    """The stack, for joins."""
    usage: Usage
    """How its resources are used."""
    book: PriceBook
    """What a unit costs."""
    as_of: datetime.date
    """The day from which the age of a price is counted."""
    readers: tuple[str, ...] = ()
    """Zones of the stack's TPU hosts: from there its buckets are read."""
    on_demand: bool = False
    """Price spot capacity as if it were on demand: the comparison that a report shows."""

    def usage_of(self, resource: Resource) -> ResourceUsage:
        """The usage of that resource."""
        return self.usage.of(resource.name)

    @cached_property
    def _address_users(self) -> Mapping[str, tuple[Resource, ...]]:
        found: dict[str, list[Resource]] = {}
        for vm in self.resources.of_type("gcp:compute/instance:Instance"):
            for text in texts(vm.inputs.get("networkInterfaces")):
                found.setdefault(text, []).append(vm)
        return {text: tuple(users) for text, users in found.items()}

    def users_of_address(self, address: Value) -> tuple[Resource, ...]:
        """The instances of which a network interface names that address literally."""
        return self._address_users.get(address, ()) if isinstance(address, str) else ()

    @cached_property
    def _reserved_addresses(self) -> frozenset[str]:
        values = (address.value("address") for address in self.resources.of_type(*ADDRESS_TYPES))
        return frozenset(value for value in values if isinstance(value, str))

    def reserves(self, address: Value) -> bool:
        """Whether an address resource of the stack is that literal address, and pays for it."""
        return isinstance(address, str) and address in self._reserved_addresses

    def line(
        self,
        name: str,
        item: str,
        quantity: Decimal | int,
        unit: str,
        location: str,
        *,
        model: PriceModel = PriceModel.ON_DEMAND,
        share: Fraction = Fraction(1),
        note: str = "",
    ) -> CostComponent | Unpriced:
        """One line of the bill: `quantity` of `item` at the price of `location`.

        `share` is the part of the month for which it bills. Without a price in exactly `unit` the line is Unpriced:
        no other unit, no other region and no other price model stands in.
        """
        return self._lines(
            name, _Wanted(item, Decimal(quantity), unit, location, model, share.as_integer_ratio()), note
        )

    @cached_property
    def _lines(self) -> Callable[[str, _Wanted, str], CostComponent | Unpriced]:
        """Lines as they were made before: what is alike in a stack is made and kept once."""
        return lru_cache(maxsize=KEPT_LINES)(self._line)

    def _line(self, name: str, wanted: _Wanted, note: str) -> CostComponent | Unpriced:
        found = self._figures(wanted)
        if isinstance(found, Unpriced):
            return found
        return CostComponent(
            name=name,
            item=wanted.item,
            quantity=wanted.quantity,
            unit=wanted.unit,
            unit_price=found.unit_price,
            amount=found.amount,
            freshness=found.freshness,
            as_of=found.as_of,
            note=joined(note, found.doubt),
            spot=wanted.model is PriceModel.SPOT,
        )

    def kept(self, make: Callable[..., Iterable[Part]], *what: Hashable) -> tuple[Part, ...]:
        """The parts that `make` makes of the market and of `what`: once for all resources that are alike in it."""
        return self._parts(make, what)

    @cached_property
    def _parts(self) -> Callable[[Callable[..., Iterable[Part]], tuple[Hashable, ...]], tuple[Part, ...]]:
        return lru_cache(maxsize=KEPT_LINES)(lambda make, what: tuple(make(self, *what)))

    @cached_property
    def _figures(self) -> Callable[[_Wanted], _Figures | Unpriced]:
        """What lines have alike that differ in the words about them, such as the name of the resource in a note."""
        return lru_cache(maxsize=KEPT_LINES)(self._priced)

    def _priced(self, wanted: _Wanted) -> _Figures | Unpriced:
        item, amount, unit, location, model, share = wanted
        price = self._price(item, model, unit, location)
        if isinstance(price, str):
            return Unpriced(item=item, reason=price, quantity=amount, unit=unit)
        by = Amount.by_hour if unit in HOURLY else Amount.by_month
        return _Figures(
            unit_price=price.unit_price,
            amount=by(price.cost(amount)) * Fraction(*share),
            freshness=price.freshness(self.as_of),
            as_of=price.seen(self.as_of),
            doubt=_doubt(price) if amount else "",
        )

    def used(
        self,
        resource: Resource,
        field: str,
        name: str,
        item: str,
        quantity: Decimal,
        unit: str,
        location: str,
        *,
        note: str = "",
    ) -> Part:
        """A line that bills by usage. At usage 0 it costs 0 and says which field to set, with or without a price."""
        found = self.line(
            name, item, quantity, unit, location, note=note if quantity else f"set {field_of(resource, field)}"
        )
        if isinstance(found, Unpriced) and not quantity:
            return f"{name}: {found.reason}; unpriced as soon as {field_of(resource, field)} is set"
        return found

    @cached_property
    def _prices(self) -> dict[tuple[str, PriceModel, str], Price | MissingPrice]:
        """The answers of the book: to find out why a price is missing takes a look at all of it."""
        return {}

    def _price(self, item: str, model: PriceModel, unit: str, location: str) -> Price | str:
        key = (item, model, location)
        found = self._prices.get(key)
        if found is None:
            found = self._prices[key] = self.book.find(*key)
        if isinstance(found, MissingPrice):
            return found.reason
        if found.unit != unit:
            return f"the book prices {item} by the {found.unit}, where a {unit} was expected"
        return found


def field_of(resource: Resource, field: str) -> str:
    """How a user writes a usage field of that resource: `usage.checkpoints.gib`."""
    return f"usage.{resource.name}.{field}"


def unknown(value: Opaque, *path: str | int, decides: str) -> UnknownInput:
    """The part of a price that hangs on an unknown or secret input; `decides` says what it decides."""
    return UnknownInput(path=dotted(path), reason=f"{value.value}; it decides {decides}")


def bill(resource: Resource, location: str, title: str, parts: Iterable[Part], *, free: str = "") -> ResourceEstimate:
    """The estimate of one resource out of its parts."""
    components, unknowns, unpriced, notes = [], [], [], []
    for part in parts:
        if isinstance(part, CostComponent):
            components.append(part)
        elif isinstance(part, UnknownInput):
            unknowns.append(part)
        elif isinstance(part, Unpriced):
            unpriced.append(part)
        else:
            notes.append(part)
    return ResourceEstimate(
        resource=resource,
        location=location,
        title=title,
        components=tuple(components),
        unknown=tuple(unknowns),
        unpriced=tuple(unpriced),
        notes=tuple(notes),
        free=free,
    )


def joined(*notes: str) -> str:
    """Several notes as one."""
    return "; ".join(filter(None, notes))


def _doubt(price: Price) -> str:
    return "unconfirmed price" if price.confidence is Confidence.LOW else ""
