"""The rules as Pulumi policies: what `pulumi preview --policy-pack policies` runs.

One stack policy a rule, since rules look at the whole graph. A rule of severity error is mandatory, any other one
advisory; what a rule cannot tell yet is an advisory diagnostic whatever the configuration says, and the other checks
go on. Rules about the steps of a preview are left to `spotrail check`, since Pulumi shows a pack no step. Two policies
more: one keeps the inputs of each resource, because a stack policy is shown outputs, in which Google's defaults are
unknown before an update; one reports what a mandatory rule finds less bad, and what is waived.

Waivers come from the stack (`spotrail:waivers`) and from the configuration of the rule's policy:
`{"TPU-ON-DEMAND": {"waivers": [{"urn": "*eval*", "reason": "...", "until": "2026-12-15"}], "asOf": "2026-11-29"}}`.

`spotrail:severity` of the stack turns a rule down or off here too. It makes no advisory policy mandatory: that is the
`enforcementLevel` of Pulumi's own configuration.

The SDK would hand secrets over as plain text. `keep_secrets` puts an opaque value in their place, so that no rule
reads one and no message prints one; outputs that a resource declares secret are opaque too.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, final

import pulumi
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy import Severity as PolicySeverity
from pulumi_policy import policy as sdk
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, UnknownValueError

from policies.errors import InputError
from policies.policy_desk import Desk, shared_out
from policies.report.names import name_of
from policies.resources import (
    PROVIDER_PREFIX,
    SECRET,
    STACK_TYPE,
    UNKNOWN,
    Opaque,
    Resource,
    ResourceOptions,
    ResourceSet,
    Value,
    has_opaque,
)
from policies.rules.engine import FAILED, Judgement, run_rules
from policies.rules.model import Finding, Rule, Severity, Waiver
from policies.rules.registry import rules
from policies.rules.severities import read_severities
from policies.rules.telling import paragraph
from policies.rules.waivers import read_day, read_waivers, read_waivers_of

NAME: Final = "spotrail"
INPUTS_POLICY: Final = "SPOTRAIL-INPUTS"
ADVICE_POLICY: Final = "SPOTRAIL-ADVICE"
_SEVERITIES: Final = {
    Severity.ERROR: PolicySeverity.HIGH,
    Severity.WARNING: PolicySeverity.MEDIUM,
    Severity.INFO: PolicySeverity.LOW,
}
_SCHEMA: Final = PolicyConfigSchema(
    properties={
        "asOf": {"type": "string", "description": "The day from which ages are counted, YYYY-MM-DD; default today."},
        "waivers": {
            "type": "array",
            "description": "Findings of this rule that somebody has decided to live with.",
            "items": {
                "type": "object",
                "properties": {field: {"type": "string"} for field in ("urn", "reason", "until")},
                "required": ["urn", "reason", "until"],
            },
        },
    }
)


@final
class UndecidedError(UnknownValueError):
    """What a rule cannot tell yet: the SDK makes one advisory diagnostic of it and goes on with the next policy."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        super().__init__(UNKNOWN_STRING_VALUE, [])
        self.message = "; ".join(f"{name_of(finding.urn)}: {finding.message}" for finding in findings)


@final
@dataclass(frozen=True, kw_only=True)
class RulePolicy:
    """One rule as the validation of a stack."""

    rule: Rule
    desk: Desk

    def __call__(self, args: StackValidationArgs, report: ReportViolation) -> None:
        """Report the rule's violations. Raises UndecidedError at the end, for the SDK, where something is unknown."""
        try:
            findings = self._judge(args).findings
        except InputError as error:
            report(str(error), None)
            return
        except Exception as error:  # noqa: BLE001  an estimate that fails must not keep the others from running
            report(f"{FAILED}{type(error).__name__}: {error}. This is a bug in spotrail.", None)
            return
        self._tell(findings, report)

    def _judge(self, args: StackValidationArgs) -> Judgement:
        config, place = args.get_config(), f"policy configuration, {self.rule.id}"
        as_of = read_day(config.get("asOf"), f"{place}.asOf") or datetime.datetime.now(tz=datetime.UTC).date()
        own = read_waivers_of(self.rule.id, config.get("waivers"), f"{place}.waivers")
        resources = resource_set(args.resources, self.desk.inputs)
        return run_rules(
            resources,
            self.desk.price(resources, as_of),
            as_of,
            (*stack_waivers(), *own),
            only=(self.rule,),
            severities=read_severities(_stack_setting("severity")),
        )

    def _tell(self, findings: Sequence[Finding], report: ReportViolation) -> None:
        shares = shared_out(self.rule, findings)
        self.desk.pass_on(self.rule, shares.advice)
        for finding in shares.own:
            report(paragraph(finding), finding.urn)
        if shares.undecided:
            raise UndecidedError(shares.undecided)


def build_policies() -> list[Policy]:
    """All policies of the pack. Constructs no pack: that starts a server and never returns."""
    desk = Desk()

    def keep_inputs(args: ResourceValidationArgs, _report: ReportViolation) -> None:
        desk.inputs[args.urn] = _mapping(args.props)

    def advise(_args: StackValidationArgs, report: ReportViolation) -> None:
        for finding in desk.take_advice():
            report(f"{finding.rule.id}: {paragraph(finding)}", finding.urn)

    return [
        ResourceValidationPolicy(
            name=INPUTS_POLICY,
            description="Keeps the inputs of each resource for the rules; reports nothing",
            validate=keep_inputs,
            enforcement_level=EnforcementLevel.ADVISORY,
        ),
        *(_policy(rule, desk) for rule in rules().values() if not rule.gate),
        StackValidationPolicy(
            name=ADVICE_POLICY,
            description="What a mandatory rule finds less bad than its worst, and what is waived",
            validate=advise,
            enforcement_level=EnforcementLevel.ADVISORY,
        ),
    ]


def keep_secrets() -> None:
    """Make the SDK hand out every secret as `SECRET`. It has no hook for that: its reader is wrapped, in this process.

    Called once, by the process that serves the pack.
    """
    module = vars(sdk)
    read = module["deserialize_properties"]
    module["deserialize_properties"] = lambda props, proxy_secrets=False: read(_masked(props), proxy_secrets)


def _masked(found: Any) -> Any:
    if isinstance(found, dict):
        if found.get(SPECIAL_SIG_KEY) == SPECIAL_SECRET_SIG:
            return SECRET
        return {key: _masked(value) for key, value in found.items()}
    return [_masked(value) for value in found] if isinstance(found, list) else found


def resource_set(found: Iterable[PolicyResource], inputs: Mapping[str, Mapping[str, Value]]) -> ResourceSet:
    """The stack as every rule sees it. `inputs` by URN; where they are missing, the outputs stand for them."""
    return ResourceSet(tuple(_resource(resource, inputs.get(resource.urn)) for resource in found))


def stack_waivers() -> tuple[Waiver, ...]:
    """The waivers of the stack file. Raises InputError."""
    return read_waivers(_stack_setting("waivers"))


def _stack_setting(key: str) -> object:
    """An object of the stack file, which Pulumi hands to a pack as JSON; None where it is not set."""
    text = pulumi.Config("spotrail").get(key)
    try:
        return json.loads(text) if text else None
    except json.JSONDecodeError as error:
        raise InputError(f"spotrail:{key} is no JSON: {error}") from error


def _policy(rule: Rule, desk: Desk) -> StackValidationPolicy:
    return StackValidationPolicy(
        name=rule.id,
        description=rule.title,
        validate=RulePolicy(rule=rule, desk=desk),
        enforcement_level=(
            EnforcementLevel.MANDATORY if rule.severity is Severity.ERROR else EnforcementLevel.ADVISORY
        ),
        config_schema=_SCHEMA,
        severity=_SEVERITIES[rule.severity],
        remediation_steps=rule.remediation,
        url=rule.url,
    )


def _resource(found: PolicyResource, inputs: Mapping[str, Value] | None) -> Resource:
    outputs = _mapping(found.props)
    secret = dict.fromkeys(found.opts.additional_secret_outputs, SECRET)
    outputs |= {key: value for key, value in secret.items() if key in outputs}
    if inputs is None:
        inputs, outputs = outputs, {}
    return Resource(
        urn=found.urn,
        type=found.resource_type,
        name=found.name,
        custom=_is_custom(found),
        inputs=inputs,
        # An unknown output whose input is unset is a default that Google will fill in: unset, as in any other source.
        outputs={key: value for key, value in outputs.items() if not has_opaque(value)},
        options=_options(found),
    )


def _options(found: PolicyResource) -> ResourceOptions:
    return ResourceOptions(
        parent=found.parent.urn if found.parent else found.opts.parent,
        provider=f"{found.provider.urn}::known-to-the-engine" if found.provider else "",
        dependencies=tuple(other.urn for other in found.dependencies),
        property_dependencies={
            key: tuple(other.urn for other in others) for key, others in found.property_dependencies.items()
        },
        protect=bool(found.opts.protect),
        delete_before_replace=bool(found.opts.delete_before_replace),
        ignore_changes=tuple(found.opts.ignore_changes),
        additional_secret_outputs=tuple(found.opts.additional_secret_outputs),
    )


def _is_custom(found: PolicyResource) -> bool:
    """A policy is not told. Providers and what has one are in the cloud; so is every token with a module path."""
    if found.resource_type == STACK_TYPE:
        return False
    return bool(found.provider) or found.resource_type.startswith(PROVIDER_PREFIX) or "/" in found.resource_type


def _mapping(props: Mapping[str, Any]) -> dict[str, Value]:
    return {str(key): _at(props, key) for key in props}


def _at(container: Any, key: str | int) -> Value:
    """The value there. The SDK's proxies raise at the touch of an unknown one, so each is touched alone."""
    try:
        return _value(container[key])
    except UnknownValueError:
        return UNKNOWN


def _value(found: Any) -> Value:
    if found is None or isinstance(found, bool | int | str | Opaque):
        return found
    if isinstance(found, float):
        return int(found) if found.is_integer() else Decimal(str(found))
    if isinstance(found, Mapping):
        return _mapping(found)
    if isinstance(found, Sequence):
        return tuple(_at(found, index) for index in range(len(found)))
    return UNKNOWN  # an asset or an archive: nobody looks into it
