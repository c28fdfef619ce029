"""Findings in words, for whoever shows one at a time."""

from __future__ import annotations

from policies.rules.bills import a_month
from policies.rules.model import Finding


def paragraph(finding: Finding) -> str:
    """A finding without its place: the message, its money, what to do, where to read on, and the waiver."""
    money = a_month(finding.monthly) if finding.monthly else ""
    lines = [
        finding.message,
        "" if money in finding.message else money,
        finding.rule.remediation,
        finding.rule.url,
        f"waived: {finding.waived}" if finding.waived else "",
    ]
    return "\n".join(line for line in lines if line)
