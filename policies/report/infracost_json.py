"""A report in the shape of Infracost's JSON 0.2, so that what reads or comments that can read ours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from policies.estimate.change import ChangedResource
from policies.estimate.model import CostComponent, Estimate, ResourceEstimate, total
from policies.money import HOURS_PER_MONTH, ZERO, Amount, decimal_of, plain
from policies.report.escapes import line
from policies.report.headline import moved
from policies.report.issues import source_file
from policies.report.quantities import of_a_month, without_price
from policies.report.stack import StackReport
from policies.resources import Resource

VERSION: Final = "0.2"
BY_USAGE: Final = (
    "alerting.time-series",
    "artifact-registry.",
    "logging.",
    "network.nat.",
    "pubsub.",
    "run.job.",
    "storage.",
    "transfer.",
)
"""What the items begin with whose quantity is a matter of use and not of the program."""


def stack_infracost(report: StackReport) -> str:
    """The report as one line of ASCII; every amount is an exact decimal string.

    A total is null where nothing is known of it or the source hides unchanged resources; the difference then stands
    alone. The time is the day that ages are counted from, so that the same input gives the same text.
    """
    return json.dumps(_root(report), allow_nan=False) + "\n"


def _root(report: StackReport) -> dict[str, Any]:
    project = _project(report)
    past, new, diff = project["pastBreakdown"], project["breakdown"], project["diff"]
    return {
        "version": VERSION,
        "metadata": _metadata(report),
        "currency": report.change.after.currency,
        "projects": [project],
        **_renamed(new, "total"),
        **_renamed(past, "pastTotal"),
        **_renamed(diff, "diffTotal"),
        "timeGenerated": _time(report),
        "summary": project["summary"],
    }


def _renamed(breakdown: Mapping[str, Any], start: str) -> dict[str, Any]:
    names = ("HourlyCost", "MonthlyCost", "MonthlyUsageCost")
    return {f"{start}{name}": breakdown[f"total{name}"] for name in names}


def _metadata(report: StackReport) -> dict[str, str]:
    """What the schema demands; spotrail reads no repository, so that half is empty."""
    unread = ("vcsBranch", "vcsCommitSha", "vcsCommitAuthorName", "vcsCommitAuthorEmail", "vcsCommitMessage")
    command = "breakdown" if report.change.before is None else "diff"
    return {"infracostCommand": command, **dict.fromkeys(unread, ""), "vcsCommitTimestamp": _time(report)}


def _time(report: StackReport) -> str:
    return f"{report.as_of.isoformat()}T00:00:00Z"


def _project(report: StackReport) -> dict[str, Any]:
    change = report.change
    name = line(f"{report.project}/{report.stack}")
    return {
        "name": name,
        "displayName": name,
        "metadata": {"path": line(source_file(report)), "type": f"pulumi_{report.kind.value}"},
        "pastBreakdown": _breakdown(change.before, whole=change.whole),
        "breakdown": _breakdown(change.after, whole=change.whole),
        "diff": _diff(report),
        "summary": _summary(change.after),
    }


def _breakdown(estimate: Estimate | None, *, whole: bool) -> dict[str, Any]:
    """One side; without a before, nothing is listed and nothing is claimed."""
    known = estimate is not None and whole and not estimate.nothing_known
    resources = () if estimate is None else estimate.resources
    lines = (part for found in resources for part in found.components)
    return {
        "resources": [_resource(found) for found in resources if not found.free],
        "freeResources": [_head(found.resource, found.location) for found in resources if found.free],
        **_total(total(found.amount for found in resources) if known else None),
        "totalMonthlyUsageCost": _monthly(_by_usage(lines)) if known else None,
    }


def _diff(report: StackReport) -> dict[str, Any]:
    """What the change moves, with the differences in place of the amounts."""
    change = report.change
    known = not change.nothing_known
    return {
        "resources": [_moved(each) for each in moved(change)],
        **_total(change.delta if known else None),
        "totalMonthlyUsageCost": _monthly(total(map(_usage_delta, change.resources))) if known else None,
    }


def _resource(found: ResourceEstimate) -> dict[str, Any]:
    known = not found.nothing_known
    return {
        **_head(found.resource, found.location),
        **_costs(found.amount if known else None),
        "monthlyUsageCost": _monthly(_by_usage(found.components)) if known else None,
        "costComponents": [*map(_component, found.components), *_missing(found)],
    }


def _head(resource: Resource, location: str) -> dict[str, Any]:
    labels = resource.value("labels")
    tags = labels.items() if isinstance(labels, Mapping) else ()
    return {
        "name": line(f"{resource.type}.{resource.name}"),
        "resourceType": line(resource.type),
        "tags": {line(key): line(value) for key, value in tags if isinstance(value, str)},
        "metadata": {"urn": line(resource.urn), "location": line(location)},
    }


def _component(part: CostComponent) -> dict[str, Any]:
    quantity = of_a_month(part)
    return {
        "name": line(part.name),
        "unit": part.unit,
        "hourlyQuantity": plain(decimal_of(quantity / HOURS_PER_MONTH)),
        "monthlyQuantity": plain(decimal_of(quantity)),
        "price": plain(part.unit_price),
        **_costs(part.amount),
        "usageBased": part.item.startswith(BY_USAGE),
        "priceNotFound": False,
    }


def _missing(found: ResourceEstimate) -> Iterator[dict[str, Any]]:
    """What has no price or is not known: never 0."""
    for part in found.unpriced:
        quantity = without_price(part)
        shown = None if quantity is None else plain(decimal_of(quantity))
        yield _without_price(f"{part.item}: {part.reason}", part.unit, shown)
    for hidden in found.unknown:
        yield _without_price(f"{hidden.path}: {hidden.reason}", "", None)


def _without_price(name: str, unit: str, quantity: str | None) -> dict[str, Any]:
    return {
        "name": line(name),
        "unit": unit,
        "hourlyQuantity": None,
        "monthlyQuantity": quantity,
        "price": None,
        **_costs(None),
        "usageBased": False,
        "priceNotFound": True,
    }


def _moved(each: ChangedResource) -> dict[str, Any]:
    sides = [found for found in (each.after, each.before) if found is not None]
    known = each.exact or not any(found.nothing_known for found in sides)
    return {
        **_head(sides[0].resource, sides[0].location),
        **_costs(each.delta if known else None),
        "monthlyUsageCost": _monthly(_usage_delta(each)) if known else None,
        "costComponents": [part for part in _moved_parts(each.before, each.after) if _says_something(part)],
    }


def _moved_parts(before: ResourceEstimate | None, after: ResourceEstimate | None) -> Iterator[dict[str, Any]]:
    """The parts of both sides by name and unit, each with the differences of its figures."""
    old, new = _by_name(before), _by_name(after)
    for key in dict.fromkeys((*new, *old)):
        was, will = old.get(key, ()), new.get(key, ())
        quantity, amount, price = (now - then for now, then in zip(_figures(will), _figures(was), strict=True))
        yield {
            **_component((*will, *was)[0]),
            "hourlyQuantity": plain(decimal_of(quantity / HOURS_PER_MONTH)),
            "monthlyQuantity": plain(decimal_of(quantity)),
            "price": plain(decimal_of(price)),
            **_costs(Amount(amount)),
        }
    yield from () if after is None else _missing(after)


def _by_name(found: ResourceEstimate | None) -> dict[tuple[str, str], tuple[CostComponent, ...]]:
    """Parts of one name and unit together: two disks of one machine have the same names."""
    parts: dict[tuple[str, str], tuple[CostComponent, ...]] = {}
    for part in found.components if found else ():
        parts[part.name, part.unit] = (*parts.get((part.name, part.unit), ()), part)
    return parts


def _figures(parts: Sequence[CostComponent]) -> tuple[Fraction, Fraction, Fraction]:
    """Quantity and cost of a month, and the price of a unit; 0 where there is no such part."""
    price = Fraction(parts[0].unit_price) if parts else Fraction(0)
    return sum(map(of_a_month, parts), Fraction(0)), total(part.amount for part in parts).per_month, price


def _says_something(part: Mapping[str, Any]) -> bool:
    return bool(part["priceNotFound"] or part["monthlyCost"] != "0.00" or part["monthlyQuantity"] != "0.00")


def _summary(estimate: Estimate) -> dict[str, Any]:
    """How much of the stack has a price: a type that spotrail does not know is unsupported, a free one has none."""
    found = estimate.resources
    free = [each for each in found if each.free]
    unsupported = [each for each in found if _unsupported(each)]
    supported = [each for each in found if not each.free and not _unsupported(each)]
    return {
        "totalResources": len(found),
        "totalDetectedResources": len(found),
        "totalSupportedResources": len(supported),
        "totalUnsupportedResources": len(unsupported),
        "totalUsageBasedResources": sum(any(map(_is_by_usage, each.components)) for each in found),
        "totalNoPriceResources": len(free),
        "supportedResourceCounts": _counts(supported),
        "unsupportedResourceCounts": _counts(unsupported),
        "noPriceResourceCounts": _counts(free),
    }


def _unsupported(found: ResourceEstimate) -> bool:
    return any(part.item == found.resource.type for part in found.unpriced)


def _counts(found: Iterable[ResourceEstimate]) -> dict[str, int]:
    return dict(sorted(Counter(line(each.resource.type) for each in found).items()))


def _is_by_usage(part: CostComponent) -> bool:
    return part.item.startswith(BY_USAGE)


def _by_usage(parts: Iterable[CostComponent]) -> Amount:
    return total(part.amount for part in parts if _is_by_usage(part))


def _usage_delta(each: ChangedResource) -> Amount:
    sides = (_by_usage(found.components) if found else ZERO for found in (each.after, each.before))
    return next(sides) - next(sides)


def _costs(amount: Amount | None) -> dict[str, str | None]:
    return {"hourlyCost": None if amount is None else plain(amount.hourly), "monthlyCost": _monthly(amount)}


def _total(amount: Amount | None) -> dict[str, str | None]:
    costs = _costs(amount)
    return {"totalHourlyCost": costs["hourlyCost"], "totalMonthlyCost": costs["monthlyCost"]}


def _monthly(amount: Amount | None) -> str | None:
    return None if amount is None else plain(amount.monthly)
