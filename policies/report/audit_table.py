"""The audit as a table for people: what is wasted first, the reason beside every verdict, the next step at the end."""

from __future__ import annotations

import datetime
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from policies.audit.model import Audit, AuditFinding, Verdict, VerdictKind
from policies.audit.telling import many
from policies.money import Amount
from policies.report.figures import money
from policies.report.layout import NARROWEST, Page, clean
from policies.report.table import SIGNS

FIGURE: Final = 12
KIND: Final = max(len(kind.value) for kind in VerdictKind)
WIDE: Final = 92
"""From this width on the verdict stands in a column of its own."""
HOUR: Final = datetime.timedelta(hours=1)
DAY: Final = 24 * HOUR
TYPES: Final = {
    "compute.disk": "disk",
    "tpu.node": "node",
    "tpu.queuedResource": "request",
    "compute.instance": "VM",
    "compute.address": "address",
    "compute.snapshot": "snapshot",
    "compute.image": "image",
    "compute.instanceGroupManager": "group",
    "compute.storagePool": "pool",
    "compute.router": "router",
    "storage.bucket": "bucket",
    "storage.anywhereCache": "cache",
}


def audit_lines(
    audit: Audit, width: int, *, next_steps: Sequence[str] = (), everything: bool = False
) -> Iterator[Text]:
    """The audit, line by line. Resources that are used as they should be are counted, or listed with `everything`.

    `next_steps` are commands.
    """
    page = Page(width)
    yield from _answer(audit, page)
    yield Text()
    shown = [verdict for verdict in audit.verdicts if everything or worth_showing(verdict)]
    if shown:
        yield from _heading(page)
    for verdict in shown:
        yield from _row(verdict, page)
    yield from _rest(audit.verdicts, shown, page)
    yield from _findings(audit.findings, page)
    for gap in audit.missing:
        yield from page.paragraph(f"Not seen: {gap.part}: {gap.why}", style="yellow", hanging="   ")
    for note in audit.notes:
        yield from page.paragraph(f"Note: {note}", hanging="       ")
    for number, step in enumerate(next_steps):
        if number == 0:
            yield Text()
        # Whole, so that it can be copied; a terminal wraps it.
        yield Text(clean(f" {'Next:' if number == 0 else '     '} {step}"))


def worth(saving: Amount | None) -> str:
    """`saves 96.00 /month`; a schedule that lifts the throughput costs something. Empty for nothing."""
    if not saving:
        return ""
    if saving.per_month > 0:
        return f"saves {money(saving.monthly)} /month"
    return f"costs {money(-saving.monthly)} /month more"


def worth_showing(verdict: Verdict) -> bool:
    """Whether there is something to do or to know: waste, a remedy, or nothing that can be said."""
    return bool(verdict.waste) or verdict.remedy is not None or verdict.kind.unknown or _unpriced(verdict)


def _unpriced(verdict: Verdict) -> bool:
    used = (VerdictKind.IN_USE, VerdictKind.TOO_NEW, VerdictKind.WAITING)
    return verdict.waste is None and verdict.kind not in used


def _answer(audit: Audit, page: Page) -> Iterator[Text]:
    least = "" if audit.complete else "at least "
    idle = f" Idle now: {least}{money(audit.waste.monthly)} {audit.currency} /month, "
    left = f"{idle}{so_far_words(audit)}"
    yield from page.ends(left, clean(f"project {audit.project} · {span_words(audit)}"), "bold")
    yield from page.paragraph(_counted(audit.verdicts))
    unknown = sum(verdict.kind.unknown for verdict in audit.verdicts)
    if unknown:
        yield from page.paragraph(f"Could not be judged: {unknown} (UNKNOWN below).", style="yellow")
    if audit.missing:
        unread = many(len(audit.missing), "part")
        said = f"Only partly seen: {unread} of the project could not be read (below), so no remedy is proposed."
        yield from page.paragraph(said, style="yellow")


def span_words(audit: Audit) -> str:
    """`7 days to 2026-11-15 09:55Z`."""
    span = audit.window.length
    days = f"{round(span / DAY)} days" if span > 1.5 * DAY else f"{round(span / HOUR)} hours"
    return f"{days} to {audit.window.end.astimezone(datetime.UTC):%Y-%m-%d %H:%MZ}"


def subject(verdict: Verdict) -> str:
    """`disk llama-old`; a cache, whose name is a zone, by its bucket."""
    name = verdict.resource.split("/")[1] if verdict.type == "storage.anywhereCache" else verdict.name
    return f"{TYPES.get(verdict.type, verdict.type)} {name}"


def so_far_words(audit: Audit) -> str:
    """`1,207.44 so far`; a lower bound where of some waste nobody knows since when it is."""
    dark = any(verdict.waste and verdict.so_far is None for verdict in audit.verdicts)
    return f"{'at least ' if dark and audit.complete else ''}{money(audit.wasted_so_far)} so far"


def _counted(verdicts: Iterable[Verdict]) -> str:
    """`214 disks, 12 nodes`."""
    kinds = Counter(TYPES.get(verdict.type, verdict.type) for verdict in verdicts)
    return ", ".join(f"{number:,} {_plural(kind, number)}" for kind, number in kinds.most_common()) or "nothing found"


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}es" if noun.endswith("s") else f"{noun}s"


def _heading(page: Page) -> Iterator[Text]:
    rest = f"{'Verdict':<{KIND}}  What, why and what would stop it" if page.width >= WIDE else "What and why"
    yield Text(f"{'Waste/month':>{FIGURE}}{'So far':>{FIGURE}}  {rest}", "bold")


def _row(verdict: Verdict, page: Page) -> Iterator[Text]:
    """Figures, then what and why in the room that is left, wrapped there; the remedy on a line of its own."""
    waste = "?" if verdict.waste is None else money(verdict.waste.monthly)
    so_far = "?" if verdict.so_far is None else money(verdict.so_far)
    wide = page.width >= WIDE
    lead = f"{waste:>{FIGURE}}{so_far:>{FIGURE}}  " + (f"{verdict.kind.value:<{KIND}}  " if wide else "")
    thing = f"{subject(verdict)} ({verdict.location})"
    what = thing if wide else f"{verdict.kind.value} {thing}"
    indent = " " * cell_len(lead)
    style = "yellow" if verdict.kind.unknown else "red" if verdict.waste else ""
    room = max(page.width, NARROWEST) - len(indent)
    head, *rest = textwrap.wrap(clean(f"{what}: {verdict.message}"), room, break_on_hyphens=False)
    yield Text(lead, style).append(head)
    yield from (Text(f"{indent}{line}") for line in rest)
    if verdict.remedy is not None:
        saves = f", {effect}" if (effect := worth(verdict.remedy.monthly_saving)) else ""
        lines = textwrap.wrap(clean(f"→ {verdict.remedy.text}{saves}"), room, subsequent_indent="  ")
        yield from (Text(f"{indent}{line}", "green") for line in lines)


def _rest(verdicts: Sequence[Verdict], shown: Sequence[Verdict], page: Page) -> Iterator[Text]:
    told = {id(verdict) for verdict in shown}
    kinds = Counter(verdict.kind.value for verdict in verdicts if id(verdict) not in told)
    if kinds:
        counted = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
        yield from page.paragraph(f"and nothing to do about: {counted}", style="dim")


def _findings(findings: Iterable[AuditFinding], page: Page) -> Iterator[Text]:
    for number, finding in enumerate(findings):
        if number == 0:
            yield Text()
        sign, style = SIGNS[finding.severity]
        worth = "" if finding.monthly is None else f"{money(finding.monthly.monthly)} /month. "
        name = finding.resource.rpartition("/")[2]
        yield from page.paragraph(f"{sign} {finding.rule}  {name}  {finding.message}", style=style, hanging="   ")
        yield from page.paragraph(f"{worth}{finding.remediation}", "   ")
