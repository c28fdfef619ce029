"""Streams of engine events, one a line: a streaming preview (`PULUMI_ENABLE_STREAMING_JSON_PREVIEW`) or an event log.

A stream has what a digest lacks, the results of policy packs, and lacks what a digest has: dependencies and options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, final

from policies.changes import PolicyResult, Reading
from policies.readers.errors import ReadError
from policies.readers.operations import Step
from policies.readers.planned import reading_of, refuse_missing, step_of
from policies.readers.preview_digest import config_of, counts, refuse_failed
from policies.readers.registry import Reader, Source
from policies.resources import Value

TITLE: Final = "a stream of engine events"
SUFFIX: Final = "Event"
_SKIPPED: Final = frozenset(
    {
        "cancelEvent",
        "stdoutEvent",
        "resOpFailedEvent",
        "policyLoadEvent",
        "policyRemediationEvent",
        "policyAnalyzeSummaryEvent",
        "policyRemediateSummaryEvent",
        "policyAnalyzeStackSummaryEvent",
        "startDebuggingEvent",
        "progressEvent",
        "errorEvent",
    }
)
"""Kinds that say nothing about what a stack is. Source: Pulumi's sdk/go/common/apitype/events.go."""


@final
@dataclass(kw_only=True)
class _Seen:
    """What the events so far have said."""

    source: Source
    steps: dict[tuple[str, str, int], Step] = field(default_factory=dict)
    config: Mapping[str, Value] = field(default_factory=dict)
    counted: object = None
    diagnostics: list[tuple[object, object]] = field(default_factory=list)
    policy_results: list[PolicyResult] = field(default_factory=list)

    def take(self, kind: str, payload: Mapping[str, Any], where: str) -> None:
        """Add one event. Raises ReadError."""
        match kind:
            case "preludeEvent":
                self.config = config_of(payload.get("config"), f"{where}.config", self.source.values)
            case "resourcePreEvent" | "resOutputsEvent":
                self._step(payload.get("metadata"), f"{where}.metadata", begins=kind == "resourcePreEvent")
            case "diagnosticEvent":
                self.diagnostics.append((payload.get("severity"), payload.get("message")))
            case "policyEvent":
                self.policy_results.append(_policy_result(payload))
            case "summaryEvent":
                self.counted = payload.get("resourceChanges")
                if payload.get("maybeCorrupt"):
                    self.source.notes.add("Pulumi says that the state may be corrupt")
            case _ if kind not in _SKIPPED:
                self.source.notes.add(f'events of the kind "{kind[:40]}" are not known and were skipped')

    def _step(self, found: object, where: str, *, begins: bool) -> None:
        if not isinstance(found, dict):
            raise ReadError(f"{where} is no object; it must be a step")
        step = step_of(found, where, self.source.values, "old", "new")
        if step.of_pending:
            # One URN may have several that are still to be deleted, and nothing comes of any.
            if begins:
                self.steps[step.op, step.urn, len(self.steps) + 1] = step
            return
        # The event after a step repeats it, with the outputs that it has by then.
        before = self.steps.get((step.op, step.urn, 0))
        self.steps[step.op, step.urn, 0] = replace(step, old=before.old) if before else step


def _claims(first: Mapping[str, object]) -> bool:
    return any(key.endswith(SUFFIX) for key in first) and ("sequence" in first or "timestamp" in first)


def _read(source: Source) -> Reading:
    seen = _Seen(source=source)
    for number, (kind, payload) in enumerate(_events(source), start=1):
        seen.take(kind, payload, f"{source.place}: event {number:,}: {kind}")
    refuse_failed(seen.diagnostics, source.place)
    counted = counts(seen.counted, f"{source.place}: the summary of changes")
    mandatory = sum(result.mandatory for result in seen.policy_results)
    if not mandatory:  # a log of what must not happen says so without its steps
        refuse_missing(tuple(seen.steps.values()), counted, source.place)
    if seen.policy_results:
        number = len(seen.policy_results)
        many = f"{number:,} violation{'s' * (number > 1)}"
        source.notes.add(f"Pulumi's own policy packs report {many}, {mandatory:,} of them mandatory")
    urns = [result.urn for result in seen.policy_results if result.urn]
    reading = reading_of(tuple(seen.steps.values()), counted, seen.config, source.notes, urns)
    return replace(reading, policy_results=tuple(seen.policy_results))


def _events(source: Source) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for event in chain((source.first,), source.following):
        for key, payload in event.items():
            if key.endswith(SUFFIX):
                yield key, payload if isinstance(payload, dict) else {}


def _policy_result(payload: Mapping[str, Any]) -> PolicyResult:
    return PolicyResult(
        urn=_text(payload, "resourceUrn"),
        pack=_text(payload, "policyPackName"),
        policy=_text(payload, "policyName"),
        message=_text(payload, "message"),
        # What remediates and still reports is mandatory to Pulumi; so is, to us, a level that nobody knows.
        mandatory=_text(payload, "enforcementLevel") != "advisory",
    )


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""


READER: Final = Reader(title=TITLE, claims=_claims, read=_read)
