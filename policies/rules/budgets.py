"""The rules that a budget breaks. No resource breaks one, a sum does: `policies.budget` judges, not the engine.

They are in no registry, so that nobody waives them or turns them down: who means to spend more raises the limit.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from policies.resources import STACK_TYPE
from policies.rules.model import Rule, Severity


def _budget(name: str, title: str, remediation: str) -> Rule:
    return Rule(
        id=f"BUDGET-{name}",
        title=title,
        severity=Severity.ERROR,
        applies_to=(STACK_TYPE,),
        remediation=remediation,
        url="https://docs.cloud.google.com/architecture/framework/cost-optimization",
        check=lambda stack, context: (),
    )


TOTAL: Final = _budget(
    "TOTAL", "The stack keeps its monthly budget", "Take out or shrink the largest parts, or raise --budget."
)
LABEL: Final = _budget(
    "LABEL", "What carries a label keeps its monthly budget", "Shrink what carries the label, or raise its --budget."
)
TYPE: Final = _budget(
    "TYPE", "All resources of a type keep their monthly budget", "Shrink or share them, or raise the type's --budget."
)
CHANGE: Final = _budget(
    "CHANGE", "A change adds no more than its budget", "Split or shrink the change, or raise --budget change=."
)
BUDGET_RULES: Final = MappingProxyType({rule.id: rule for rule in (TOTAL, LABEL, TYPE, CHANGE)})
