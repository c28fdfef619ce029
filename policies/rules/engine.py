"""Runs the rules over a stack and its steps: violations become findings, waivers cover them, what passed is counted."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, final

from policies.changes import Change
from policies.errors import InputError
from policies.estimate.model import Estimate
from policies.money import ZERO, dearness
from policies.prices.book import PriceBook, shipped_book
from policies.resources import STACK_TYPE, Resource, ResourceSet
from policies.rules.model import Context, Finding, Rule, Severity, Violation, Waiver
from policies.rules.registry import rules

UNDECIDED: Final = "cannot tell yet: "
FAILED: Final = "could not be evaluated: "
AS_SHIPPED: Final[Mapping[str, Severity | None]] = MappingProxyType({})
"""No severity but the rules' own."""


@final
@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the rules say about a stack."""

    findings: tuple[Finding, ...]
    """Worst first, then by money, rule and URN; the waived ones are among them."""
    passed: tuple[Rule, ...]
    """Rules that looked at something and found nothing, not even something waived or undecided."""
    idle: tuple[Rule, ...] = ()
    """Rules that nothing in the stack concerns."""
    off: tuple[Rule, ...] = ()
    """Rules that were switched off."""


def run_rules(
    resources: ResourceSet,
    estimate: Estimate,
    as_of: datetime.date,
    waivers: Sequence[Waiver] = (),
    *,
    book: PriceBook | None = None,
    only: Iterable[Rule] | None = None,
    changes: Sequence[Change] = (),
    hidden: int = 0,
    severities: Mapping[str, Severity | None] = AS_SHIPPED,
) -> Judgement:
    """Judge a stack by every rule, or by `only` some.

    `book` are the prices that `estimate` was made with (default: the shipped ones). `changes` are the steps of a
    preview, without which the rules about steps are idle, and `hidden` how many resources it does not show. In
    `severities` stands by rule id what is to hold in place of the rule's own, None for off. An input that cannot be
    what it says becomes an error finding, a rule that fails one that says so; neither stops anybody else.
    """
    context = Context(
        resources=resources,
        estimate=estimate,
        as_of=as_of,
        book=shipped_book() if book is None else book,
        waivers=tuple(waivers),
        changes=tuple(changes),
        hidden=hidden,
    )
    asked = tuple(rules().values() if only is None else only)
    off = tuple(rule for rule in asked if severities.get(rule.id, rule.severity) is None)
    findings: dict[tuple[str, str], Finding] = {}
    passed: list[Rule] = []
    idle: list[Rule] = []
    for rule in (with_severity(rule, severities) for rule in asked if rule not in off):
        subjects = subjects_of(rule, context)
        found = list(_judge_all(rule, subjects, context))
        for finding in found:
            findings.setdefault(_identity(finding), finding)
        if not found:
            (passed if subjects else idle).append(rule)
    return Judgement(
        findings=_sorted(findings.values()),
        passed=tuple(passed),
        idle=tuple(idle),
        off=off,
    )


def with_severity(rule: Rule, severities: Mapping[str, Severity | None]) -> Rule:
    """The rule with the severity that `severities` give it."""
    return replace(rule, severity=severities.get(rule.id) or rule.severity)


def judge(rule: Rule, resource: Resource, context: Context) -> Iterator[Finding]:
    """The findings of one rule about one resource."""
    return _judge_all(rule, (resource,), context)


def _judge_all(rule: Rule, resources: Iterable[Resource], context: Context) -> Iterator[Finding]:
    for resource in resources:
        try:
            for violation in rule.check(resource, context):
                yield _cover(_finding(rule, resource, violation, context), context)
        except InputError as error:
            message = str(error).removeprefix(f"{resource.urn}: ")
            yield _cover(Finding(rule=rule, severity=Severity.ERROR, urn=resource.urn, message=message), context)
        except Exception as error:  # noqa: BLE001  one rule that fails must not keep the others from running
            yield _failure(rule, resource, error)


def subjects_of(rule: Rule, context: Context) -> tuple[Resource, ...]:
    """The resources that a rule applies to. A set without its stack resource still has a stack to judge."""
    if rule.gate:
        # An alias leaves the old URN on what stands; the step has the one that a reader knows.
        sides = ((change.before or change.after, change.urn) for change in context.changes)
        return tuple(replace(side, urn=urn) for side, urn in sides if side and side.type in rule.applies_to)
    subjects = context.resources.of_type(*rule.applies_to)
    if not subjects and STACK_TYPE in rule.applies_to and len(context.resources):
        return (_stack_of(context.resources),)
    return subjects


def _stack_of(resources: ResourceSet) -> Resource:
    stack, project = next(iter(resources)).urn.removeprefix("urn:pulumi:").split("::")[:2]
    name = f"{project}-{stack}"
    return Resource(
        urn=f"urn:pulumi:{stack}::{project}::{STACK_TYPE}::{name}", type=STACK_TYPE, name=name, custom=False
    )


def _finding(rule: Rule, resource: Resource, violation: Violation, context: Context) -> Finding:
    said, message = violation.severity, violation.message
    severity = said if said and said.rank > rule.severity.rank else rule.severity
    if not violation.decided:
        severity, message = Severity.INFO, UNDECIDED + message
    elif rule.absence and context.hidden:
        unseen = "1 unchanged resource" if context.hidden == 1 else f"{context.hidden:,} unchanged resources"
        severity, message = Severity.INFO, f"{message}, as far as is shown: {unseen} may say otherwise"
    return Finding(
        rule=rule,
        severity=severity,
        urn=resource.urn,
        message=message,
        monthly=violation.monthly,
        decided=violation.decided,
    )


def _failure(rule: Rule, resource: Resource, error: Exception) -> Finding:
    """Nobody waives a bug: it is told until it is mended."""
    message = f"{FAILED}{type(error).__name__}: {error}. This is a bug in spotrail."
    return Finding(rule=rule, severity=Severity.INFO, urn=resource.urn, message=message, decided=False, failed=True)


def _cover(finding: Finding, context: Context) -> Finding:
    for waiver in context.waivers:
        if waiver.covers(finding.rule.id, finding.urn, context.as_of):
            return replace(finding, waived=f"{waiver.reason}, until {waiver.until}")
    return finding


def _identity(finding: Finding) -> tuple[str, str]:
    """What makes a finding worth telling once: several rules stumble over one malformed input with one message."""
    return finding.urn, finding.message


def _sorted(findings: Collection[Finding]) -> tuple[Finding, ...]:
    """Worst first, then by money, rule and URN."""
    place = dearness(finding.monthly or ZERO for finding in findings)
    ranks = {severity: severity.rank for severity in Severity}
    return tuple(
        sorted(findings, key=lambda each: (ranks[each.severity], place(each.monthly or ZERO), each.rule.id, each.urn))
    )
