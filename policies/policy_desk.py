"""What the policies of one run of the pack share, and which of them says what of a rule's findings."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from policies.estimate.engine import estimate
from policies.estimate.model import Estimate
from policies.prices.book import shipped_book
from policies.resources import ResourceSet, Value
from policies.rules.model import Finding, Rule, Severity
from policies.usage import Usage


@final
class Desk:
    """What the policies of one run share: the inputs seen so far, the last estimate, and findings to pass on."""

    def __init__(self) -> None:
        self.inputs: dict[str, Mapping[str, Value]] = {}
        self._advice: dict[str, tuple[Finding, ...]] = {}
        self._priced: tuple[ResourceSet, datetime.date, Estimate] | None = None

    def pass_on(self, rule: Rule, findings: Iterable[Finding]) -> None:
        """Leave findings of `rule` for the advisory policy, in place of those of an earlier run."""
        self._advice[rule.id] = tuple(findings)

    def take_advice(self) -> Iterator[Finding]:
        """The findings passed on, once."""
        for rule in tuple(self._advice):
            yield from self._advice.pop(rule)

    def price(self, resources: ResourceSet, as_of: datetime.date) -> Estimate:
        """The estimate by the shipped prices and default usage; the same stack is priced once, not once a rule."""
        if self._priced is None or self._priced[:2] != (resources, as_of):
            self._priced = (resources, as_of, estimate(resources, Usage(), shipped_book(), as_of))
        return self._priced[2]


@final
@dataclass(frozen=True, kw_only=True)
class Shares:
    """The findings of one rule, by who says them."""

    own: tuple[Finding, ...]
    """The policy of the rule reports these, at its own enforcement level."""
    advice: tuple[Finding, ...]
    """The advisory policy reports these: waived, or less bad than a mandatory rule at its worst."""
    undecided: tuple[Finding, ...]
    """These cannot be told yet: an advisory diagnostic, whatever the level."""


def shared_out(rule: Rule, findings: Sequence[Finding]) -> Shares:
    """Each finding of `rule` is said once."""
    mandatory = rule.severity is Severity.ERROR
    decided = [finding for finding in findings if finding.decided and not finding.waived]
    own = [finding for finding in decided if not mandatory or finding.severity is Severity.ERROR]
    # A rule that fails has judged nothing: its policy must not pass at `up`.
    own += [finding for finding in findings if finding.failed]
    told = {id(finding) for finding in own}
    return Shares(
        own=tuple(own),
        advice=tuple(f for f in findings if f.waived or (f.decided and id(f) not in told)),
        undecided=tuple(f for f in findings if not f.decided and not f.failed and not f.waived),
    )
