"""Why a volume has its verdict, in one line."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from policies.audit.model import VerdictKind
from policies.audit.record import Record
from policies.audit.telemetry.spans import moment
from policies.audit.telling import day, length, many
from policies.audit.terms import HOUR, Terms
from policies.audit.volumes.facts import VolumeFacts
from policies.audit.volumes.joins import Host, Standing
from policies.audit.volumes.verdict import Decision, active_share, ratio

MEMORY: Final = "what a reader has in memory (read-ahead, page cache) it does not read again"
_NAMED: Final = 3


def why(facts: VolumeFacts, decision: Decision, terms: Terms, record: Record) -> str:
    """The message of a verdict on a volume."""
    if decision.kind is VerdictKind.UNKNOWN_STATE:
        return _unsure(facts, record)
    if decision.kind is VerdictKind.IN_USE and not facts.hosts:
        return f"{_loose(facts)}: within the grace of {length(terms.grace)}"
    if decision.kind is VerdictKind.TOO_NEW and forgotten(facts, terms):
        return f"{_too_new(facts, decision)}; {_loose(facts)}, which a shorter --window would judge now"
    return _WORDS[decision.kind](facts, decision)


def forgotten(facts: VolumeFacts, terms: Terms) -> bool:
    """Whether a volume is attached to nothing for longer than the grace, however young it is."""
    since = facts.loose_since
    return not facts.hosts and since is not None and facts.now - since >= terms.grace


def rate(mibps: Fraction | int | None) -> str:
    """A rate in MiB/s as a reader takes it in: `2,400`, `12.5`, `0.0`."""
    if mibps is None:
        return "?"
    exact = Fraction(mibps)
    if exact >= 100 or (exact and exact.denominator == 1):
        return f"{round(exact):,}"
    tenths = round(exact * 10)
    return f"{tenths // 10}.{tenths % 10}"


def percent(part: Fraction | None) -> str:
    """A part in percent, never rounded up to all; below ten percent with two places."""
    if part is None:
        return "?"
    return (
        f"{Decimal(math.floor(part * 10_000)) / 100:f} %" if part < Fraction(1, 10) else f"{math.floor(part * 100)} %"
    )


def _too_new(facts: VolumeFacts, decision: Decision) -> str:
    if decision.short:
        seen = datetime.timedelta(microseconds=facts.flow.looked)
        return f"its {_readers(facts)} could be seen for {length(seen)} only: too short to judge"
    made = facts.created or facts.now
    return f"created {length(facts.now - made)} ago, after the window began at {moment(facts.window[0]):%m-%d %H:%MZ}"


def _unattached(facts: VolumeFacts, decision: Decision) -> str:
    return f"{_what(facts)}, {_loose(facts)}"


def _loose(facts: VolumeFacts) -> str:
    since = facts.loose_since
    if since is None:
        return "attached to nothing"
    if facts.attached is None and facts.detached is None:
        return f"never attached since its creation on {day(since, facts.now)}"
    if facts.attached == since:
        return f"attached to nothing, and last attached on {day(since, facts.now)}"
    return f"no reader since {day(since, facts.now)}"


def _stopped(facts: VolumeFacts, decision: Decision) -> str:
    stops = [host.stopped for host in facts.hosts]
    last = max((stop for stop in stops if stop is not None), default=None)
    since = f" since {day(last, facts.now)}" if last is not None and None not in stops else ""
    return f"{_what(facts)}, unread{since}: {_hosts(facts.hosts)}"


def _unsure(facts: VolumeFacts, record: Record) -> str:
    lost = [host for host in facts.hosts if host.standing is Standing.UNSURE]
    absent = [host.name for host in lost if not host.status]
    if absent:
        named = ", ".join(absent[:_NAMED]) + (f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else "")
        gaps = [gap.part for gap in record.missing if gap.part.startswith(("compute.instances", "tpu.nodes"))]
        seen = f"; {', '.join(gaps)} could not be read" if gaps else ""
        return f"user not found in the record: {named}{seen}"
    if lost:
        return f"{_hosts(tuple(lost))}: a state that spotrail does not know"
    if not facts.hosts:
        return "attached to nothing, and the record does not say since when"
    if not facts.known:
        return f'type "{facts.type}" is not known: whether it has throughput that bills cannot be said'
    if facts.provisioned == 0:
        return "provisioned throughput 0 is invalid: there is no ratio to it"
    return "the record does not say what throughput is provisioned: there is no ratio to it"


def _no_telemetry(facts: VolumeFacts, decision: Decision) -> str:
    if not facts.flow.coverage:
        return f"reader {facts.flow.blind} runs, and not one of its points is there"
    if facts.flow.mean is None:
        return "there is no moment for which all its readers have points"
    return f"reader {facts.flow.blind} runs, {percent(facts.flow.coverage)} of its points present"


def _tpu_host(facts: VolumeFacts, decision: Decision) -> str:
    nodes = ", ".join(f"{host.name} ({host.status or 'in another project'})" for host in facts.running if host.tpu)
    return f"read by Cloud TPU host {nodes}, whose disk traffic has no series here: look at its chips and heartbeat"


def _idle(facts: VolumeFacts, decision: Decision) -> str:
    text = f"peak {rate(facts.peak)} of {rate(facts.provisioned)} MiB/s, {percent(facts.flow.coverage)} seen"
    least = f"; {rate(facts.floor)} is the least for it, to pay nothing it has to go" if _bills_at_floor(facts) else ""
    return f"{text}{least}; {MEMORY}"


def _unreachable(facts: VolumeFacts, decision: Decision) -> str:
    reach = f"{many(facts.most, 'machine')} cannot read more than {rate(decision.target)}"
    return f"{rate(facts.provisioned)} MiB/s, of which {reach}; {_p99(facts)}"


def _bursty(facts: VolumeFacts, decision: Decision) -> str:
    read = f"read in {percent(active_share(facts))} of the time{_by(facts)}"
    least = "" if decision.saved else ", though in every six hours"
    return f"{read}{least}, peak {rate(facts.peak)} of {rate(facts.provisioned)} MiB/s"


def _too_much(facts: VolumeFacts, decision: Decision) -> str:
    text = f"{_p99(facts)} of {rate(facts.provisioned)} MiB/s, {_readers(facts)}"
    over = facts.peak is not None and decision.target is not None and facts.peak > decision.target
    return f"{text}; its peak of {rate(facts.peak)} takes longer then" if over else text


def _in_use(facts: VolumeFacts, decision: Decision) -> str:
    if not facts.sized:
        return f"attached to {_hosts(facts.running)}"
    used = ratio(facts.flow.p99, facts.provisioned)
    least = "; it cannot have less" if _at_floor(facts) else ""
    return f"{_p99(facts)} of {rate(facts.provisioned)} MiB/s ({percent(used)}), {_readers(facts)}{least}"


_WORDS: Final = MappingProxyType[VerdictKind, Callable[[VolumeFacts, Decision], str]](
    {
        VerdictKind.TOO_NEW: _too_new,
        VerdictKind.IDLE_UNATTACHED: _unattached,
        VerdictKind.IDLE_STOPPED_HOST: _stopped,
        VerdictKind.UNKNOWN_TELEMETRY: _no_telemetry,
        VerdictKind.UNKNOWN_TPU_HOST: _tpu_host,
        VerdictKind.IDLE_ATTACHED: _idle,
        VerdictKind.UNREACHABLE: _unreachable,
        VerdictKind.BURSTY: _bursty,
        VerdictKind.OVERPROVISIONED: _too_much,
        VerdictKind.IN_USE: _in_use,
    }
)


def _what(facts: VolumeFacts) -> str:
    if facts.sized and facts.provisioned is not None and facts.provisioned > facts.included:
        return f"{rate(facts.provisioned)} MiB/s"
    return f"{facts.gib:,} GiB {facts.type}" if facts.gib else facts.type or "a disk"


def _p99(facts: VolumeFacts) -> str:
    return f"p99 {rate(facts.flow.p99)}{_by(facts)}"


def _by(facts: VolumeFacts) -> str:
    """Which points the figures are of, where they are not of minutes."""
    points = facts.flow.resolution
    if points is None or points <= HOUR / 60:
        return ""
    return " by the hour" if points == HOUR else f" by {length(points)}"


def _at_floor(facts: VolumeFacts) -> bool:
    return facts.provisioned is not None and facts.floor is not None and facts.provisioned <= facts.floor


def _bills_at_floor(facts: VolumeFacts) -> bool:
    return _at_floor(facts) and (facts.provisioned or 0) > facts.included


def _readers(facts: VolumeFacts) -> str:
    return many(sum(host.machines for host in facts.running), "reader")


def _hosts(hosts: tuple[Host, ...]) -> str:
    named = ", ".join(f"{host.name} ({host.status})" for host in hosts[:_NAMED])
    return f"{named} and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else named
