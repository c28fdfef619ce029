"""The runtime version: with a wrong one the VM comes up, bills, and sees no chip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.hardware.runtimes import V6E_RUNTIME, RuntimeStatus, judge_runtime
from policies.resources import Opaque, Resource, Value, dig
from policies.rules.machines import NODE, QUEUED
from policies.rules.model import Context, Rule, Severity, Violation

GENERATION: Final = "v6e"


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    if resource.type == NODE:
        generation = resource.value("acceleratorType") or resource.value("acceleratorConfig", "type")
        yield from _judged("runtimeVersion", resource.value("runtimeVersion"), generation)
        return
    specs = resource.items("tpu", "nodeSpecs")
    if isinstance(specs, Opaque):
        yield Violation.hidden("tpu.nodeSpecs", specs)
        return
    for place, spec in enumerate(specs):
        path = f"tpu.nodeSpecs[{place}].node.runtimeVersion"
        yield from _judged(path, dig(spec, "node", "runtimeVersion"), dig(spec, "node", "acceleratorType"))


def _judged(path: str, runtime: Value, generation: Value) -> Iterator[Violation]:
    if isinstance(generation, str) and not generation.lower().startswith(GENERATION):
        return  # TPU-SHAPE says that it is no v6e; this rule knows the runtimes of v6e only
    if isinstance(runtime, Opaque):
        yield Violation.hidden(path, runtime)
        return
    verdict = judge_runtime(runtime if isinstance(runtime, str) else None)
    if verdict.status is not RuntimeStatus.OK:
        weaker = Severity.WARNING if verdict.status is RuntimeStatus.WARNING else None
        yield Violation(message=verdict.reason, severity=weaker)


RULE: Final = Rule(
    id="TPU-RUNTIME",
    title=f"A v6e slice runs {V6E_RUNTIME}",
    severity=Severity.ERROR,
    applies_to=(NODE, QUEUED),
    remediation=f"Set spotrail:slices.<name>.runtime, or runtimeVersion, to {V6E_RUNTIME}.",
    url="https://docs.cloud.google.com/tpu/docs/runtimes",
    check=_check,
)
