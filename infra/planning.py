"""The plan of a stack: its offline preview, priced by the book and judged by the rules."""

from __future__ import annotations

import datetime

from infra.plan.quotas import quota_needs
from infra.preview import Preview
from policies.changes import Reading, SourceKind
from policies.estimate.engine import TPU_ITEMS, compare_spot, estimate
from policies.estimate.model import CostComponent, Estimate
from policies.judging import configured_severities, configured_waivers
from policies.prices.book import PriceBook
from policies.report.plan import PlanReport, usage_words
from policies.rules.engine import run_rules
from policies.usage import Usage


def reading_of(seen: Preview) -> Reading:
    """What the program says about its stack, in the words that the readers of files have too."""
    return Reading(
        kind=SourceKind.PROGRAM,
        project=seen.project,
        stack=seen.stack,
        after=seen.resources,
        config=seen.config,
    )


def plan_report(seen: Preview, usage: Usage, book: PriceBook, as_of: datetime.date) -> PlanReport:
    """Price and judge what a preview has seen. Raises an InputError for an input or a waiver that cannot be."""
    priced = estimate(seen.resources, usage, book, as_of)
    reading = reading_of(seen)
    waivers, severities = configured_waivers(reading), configured_severities(reading)
    judgement = run_rules(seen.resources, priced, as_of, waivers, book=book, severities=severities)
    return PlanReport(
        project=seen.project,
        stack=seen.stack,
        place=place(priced),
        estimate=priced,
        comparison=compare_spot(priced, seen.resources, usage, book, as_of),
        findings=judgement.findings,
        passed=tuple(rule.title for rule in judgement.passed),
        quotas=quota_needs(seen.resources),
        book_as_of=book.as_of,
        book_sha256=book.sha256,
        usage=usage_words(usage),
        as_of=as_of,
        next_steps=(f"spotrail plan {seen.stack} --usage usage.yaml", f"pulumi up --stack {seen.stack}"),
    )


def place(priced: Estimate) -> str:
    """Where the chips of a stack are and how they are bought: `us-central1-b · spot`; empty without chips."""
    chips = [(found.location, line) for found in priced.resources for line in found.components if _is_chip(line)]
    zones = dict.fromkeys(location for location, _ in chips)
    markets = dict.fromkeys("spot" if line.spot else "not spot" for _, line in chips)
    return " · ".join(filter(None, (", ".join(zones), " and ".join(markets))))


def _is_chip(line: CostComponent) -> bool:
    return line.item.startswith(TPU_ITEMS)
