"""The verdict on a volume: a pure decision, the first that holds.

What decides is, in this order: its age, whether anything has it attached, whether its hosts run, whether they were
seen, and only then how they read. No telemetry is never idleness, and half a ratio is no ratio.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from policies.audit.model import VerdictKind
from policies.audit.telemetry.spans import MICRO, micros
from policies.audit.terms import Terms
from policies.audit.volumes.facts import ML, STRANGER, VolumeFacts
from policies.audit.volumes.flow import BLOCK, SETTLED
from policies.audit.volumes.joins import Standing

LEAST: Final = 24 * 3600 * MICRO
"""Readers are looked at for so long, or for the whole of a shorter window, before their volume is said to be wasted."""

MINUTE: Final = datetime.timedelta(minutes=1)


@final
@dataclass(frozen=True, kw_only=True)
class Decision:
    """What is the matter with a volume."""

    kind: VerdictKind
    target: int | None = None
    """The throughput in MiB/s that would do; None where that cannot be said or is not the question."""
    share: Fraction = Fraction(1)
    """Part of the time in which what lies above the target is wasted."""
    saved: Fraction = Fraction(1)
    """Part of the time in which it can be lowered: throughput changes once in six hours."""
    short: bool = False
    """Whether it is too new only because its reader is."""


def decide(facts: VolumeFacts, terms: Terms) -> Decision:
    """The first verdict that holds."""
    if facts.created is not None and micros(facts.created) > facts.window[0]:
        return Decision(kind=VerdictKind.TOO_NEW)
    if not facts.hosts:
        return _loose(facts, terms)
    if any(host.standing is Standing.UNSURE for host in facts.hosts):
        return Decision(kind=VerdictKind.UNKNOWN_STATE)
    if not facts.running:
        return Decision(kind=VerdictKind.IDLE_STOPPED_HOST, target=facts.floor)
    if not facts.known:
        return Decision(kind=VerdictKind.UNKNOWN_STATE)
    if not facts.sized:
        return Decision(kind=VerdictKind.IN_USE)
    return _unseen(facts, terms) or _read(facts, terms)


def ratio(used: Fraction | None, provisioned: int | None) -> Fraction | None:
    """Part of the provisioned throughput that is used; None unless both are known and something is provisioned."""
    if used is None or not provisioned:
        return None
    return used / provisioned


def _loose(facts: VolumeFacts, terms: Terms) -> Decision:
    since = facts.loose_since
    if since is None:
        return Decision(kind=VerdictKind.UNKNOWN_STATE)
    if facts.now - since < terms.grace:
        return Decision(kind=VerdictKind.IN_USE)
    return Decision(kind=VerdictKind.IDLE_UNATTACHED)


def _unseen(facts: VolumeFacts, terms: Terms) -> Decision | None:
    """Why nothing can be said of how it is read; None where it can."""
    flow, length = facts.flow, facts.window[1] - facts.window[0]
    if flow.due < terms.coverage * min(SETTLED, length):
        return Decision(kind=VerdictKind.TOO_NEW, short=True)
    if flow.coverage is None or flow.coverage < terms.coverage or flow.mean is None:
        tpu = flow.blind == STRANGER or all(host.tpu for host in facts.running)
        return Decision(kind=VerdictKind.UNKNOWN_TPU_HOST if tpu else VerdictKind.UNKNOWN_TELEMETRY)
    if not facts.provisioned:
        return Decision(kind=VerdictKind.UNKNOWN_STATE)
    if flow.looked < terms.coverage * min(LEAST, length):
        return Decision(kind=VerdictKind.TOO_NEW, short=True)
    return None


def _read(facts: VolumeFacts, terms: Terms) -> Decision:
    """The verdict on how a volume is read that was seen."""
    provisioned, floor = facts.provisioned or 0, facts.floor or 0
    if facts.peak is not None and facts.peak < Fraction(terms.idle_mibps):
        return Decision(kind=VerdictKind.IDLE_ATTACHED, target=floor)
    reach = max(floor, facts.most * terms.per_vm_mibps)
    # What was read was within reach, by however many machines.
    if facts.type == ML and provisioned > reach >= (facts.peak or 0):
        return Decision(kind=VerdictKind.UNREACHABLE, target=reach)
    active = active_share(facts)
    if active < terms.bursty:
        return Decision(kind=VerdictKind.BURSTY, target=floor, share=1 - active, saved=_lowerable(facts))
    needed = max(floor, math.ceil(terms.headroom * (facts.flow.p99 or 0)))
    used = ratio(facts.flow.p99, provisioned)
    if used is not None and used < terms.overprovisioned and needed < provisioned:
        return Decision(kind=VerdictKind.OVERPROVISIONED, target=needed)
    return Decision(kind=VerdictKind.IN_USE)


def hours_leave_open(facts: VolumeFacts, decision: Decision, terms: Terms) -> bool:
    """Whether points of minutes could say something else than the hours that the decision rests on."""
    flow, peak = facts.flow, facts.peak
    if flow.mean is None or peak is None or flow.resolution is None or flow.resolution <= MINUTE:
        return False
    if decision.kind is VerdictKind.IDLE_ATTACHED:
        return flow.mean > 0 and not facts.gauged
    if decision.kind is VerdictKind.OVERPROVISIONED:
        # Nothing is read faster than the peak: where that needs no more either, and could not be bursts, it is sure.
        sure = facts.gauged and math.ceil(terms.headroom * peak) <= (decision.target or 0)
        return not sure or flow.mean < terms.bursty * peak
    if decision.kind is VerdictKind.IN_USE:
        return flow.mean < terms.bursty * (facts.provisioned or 0)
    return False


def active_share(facts: VolumeFacts) -> Fraction:
    """Part of the window in which a volume was read; what was not seen of it is left out."""
    return Fraction(facts.flow.active, max(1, facts.window[1] - facts.window[0] - facts.flow.unseen))


def _lowerable(facts: VolumeFacts) -> Fraction:
    """Part of the blocks of six hours in which nobody reads."""
    start, end = facts.window
    blocks = (end - 1) // BLOCK - start // BLOCK + 1
    return max(Fraction(), 1 - Fraction(facts.flow.blocks, blocks))
