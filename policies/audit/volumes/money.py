"""What a volume wastes, and what its remedy saves."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, final

from policies.audit.model import VerdictKind
from policies.audit.pricing import Pricing
from policies.audit.record import Item, Part
from policies.audit.telling import bill_of
from policies.audit.volumes.facts import VolumeFacts
from policies.audit.volumes.verdict import Decision
from policies.estimate.model import Unpriced, total
from policies.money import ZERO, Amount


@final
class Money(NamedTuple):
    """What a verdict on a volume comes to."""

    waste: Amount | None
    """None where it cannot be said."""
    saving: Amount | None = None
    """Of the remedy: at most the waste."""
    reason: str = ""
    """Which price is missing."""


def money_of(pricing: Pricing, disk: Item, facts: VolumeFacts, decision: Decision) -> Money:
    """What a volume wastes by a decision, exactly."""
    if decision.kind.unknown or decision.kind is VerdictKind.TOO_NEW:
        return Money(None)
    if disk.get("storagePool") or decision.kind is VerdictKind.IN_USE:
        return Money(ZERO)
    if decision.kind is VerdictKind.IDLE_UNATTACHED:
        waste, reason = bill_of(pricing.estimate(Part.DISKS, disk))
        return Money(waste, waste, reason)
    if decision.kind is VerdictKind.IDLE_STOPPED_HOST:
        return _stopped(pricing, disk, facts)
    above = _above(pricing, disk, facts, decision.target)
    if isinstance(above, str):
        return Money(None, None, above)
    return Money(above * decision.share, above * min(decision.share, decision.saved))


def _stopped(pricing: Pricing, disk: Item, facts: VolumeFacts) -> Money:
    """All its performance; where none of it bills, the capacity that it keeps."""
    estimate = pricing.estimate(Part.DISKS, disk)
    waste, reason = bill_of(estimate)
    if waste is None:
        return Money(None, None, reason)
    lines = [line for line in estimate.components if not line.item.endswith(".capacity")]
    performance = total(line.amount for line in lines)
    saving = _above(pricing, disk, facts, facts.floor) if facts.sized else ZERO
    return Money(performance or waste, None if isinstance(saving, str) else saving)


def _above(pricing: Pricing, disk: Item, facts: VolumeFacts, target: int | None) -> Amount | str:
    """What the throughput above the target costs; the free part of it costs nothing. Or the price that is missing."""
    if facts.provisioned is None or target is None:
        return "the record does not say what throughput is provisioned"
    billed = max(0, facts.provisioned - facts.included) - max(0, target - facts.included)
    if billed <= 0:
        return ZERO
    price = pricing.throughput_rate(disk)
    return price.reason if isinstance(price, Unpriced) else price * Fraction(billed)
