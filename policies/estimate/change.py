"""What a change costs: each resource before and after, and the sums, exact to the last digit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

from policies.changes import Op
from policies.estimate.model import Estimate, ResourceEstimate
from policies.money import ZERO, Amount


@final
@dataclass(frozen=True, kw_only=True)
class ChangedResource:
    """One resource on both sides of a change."""

    urn: str
    op: Op
    before: ResourceEstimate | None
    """None where it does not stand yet, or where the source has no before."""
    after: ResourceEstimate | None
    """None where it will be gone."""

    @cached_property
    def delta(self) -> Amount:
        """What the change adds; of what is not complete, the difference of the lower bounds."""
        return (self.after.amount if self.after else ZERO) - (self.before.amount if self.before else ZERO)


@final
@dataclass(frozen=True, kw_only=True)
class ChangeEstimate:
    """A stack, priced as it stands and as it will stand."""

    resources: tuple[ChangedResource, ...]
    """In the order of the source; the sum of their deltas is the delta of the totals."""
    after: Estimate
    """As it will stand; of a state, as it stands."""
    before: Estimate | None = None
    """As it stands; None where the source has no before."""
    hidden: int = 0
    """Resources that the source does not show: then the totals are those of the change, not of the stack."""
    possible: tuple[ResourceEstimate, ...] = ()
    """What interrupted creations may cost, outside every total."""
