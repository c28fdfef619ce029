"""The policy pack as Pulumi runs it: the real policy host in a process of its own, driven over its protocol."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc
from pulumi_policy import (
    EnforcementLevel,
    PolicyCustomTimeouts,
    PolicyProviderResource,
    PolicyResource,
    PolicyResourceOptions,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy import proxy as sdk

from infra.preview import preview
from policies.estimate.engine import estimate
from policies.pack import ADVICE_POLICY, INPUTS_POLICY, RulePolicy, build_policies, resource_set
from policies.policy_desk import Desk
from policies.prices.book import shipped_book
from policies.resources import SECRET, UNKNOWN, Resource, Value
from policies.rules.engine import run_rules
from policies.rules.model import Rule, Severity
from policies.rules.registry import rules
from policies.usage import Usage

ROOT = Path(__file__).parent.parent.parent
DISK = "gcp:compute/disk:Disk"
VM = "gcp:tpu/v2Vm:V2Vm"
BUCKET = "gcp:storage/bucket:Bucket"
STACK = "pulumi:pulumi:Stack"
ZONE = "us-central1-b"
LABELS = {"owner": "ml", "env": "dev", "ttl": "7d", "managed-by": "spotrail"}
SENTINELS = {name: value for name, value in vars(sdk).items() if name.startswith("UNKNOWN_")}
UNSET = sdk.UNKNOWN_NUMBER_VALUE
ADVISORY, MANDATORY = analyzer_pb2.ADVISORY, analyzer_pb2.MANDATORY
SEEN = {name: rule for name, rule in rules().items() if not rule.gate}
"""The rules that a pack can apply: Pulumi shows it no step."""
SECRET_KEY, SECRET_VALUE = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"


def urn(token: str, name: str) -> str:
    return f"urn:pulumi:dev::acme::{token}::{name}"


def declared(token: str, name: str, properties: Mapping[str, Any], **more: Any) -> analyzer_pb2.AnalyzerResource:
    """A resource as the engine shows it after its registration."""
    refs = more.pop("refs", {})
    message = analyzer_pb2.AnalyzerResource(type=token, urn=urn(token, name), name=name, **more)
    message.properties.update(properties)
    for key, urns in refs.items():
        message.propertyDependencies[key].urns.extend(urns)
    return message


def volume(name: str = "llama", **properties: Any) -> analyzer_pb2.AnalyzerResource:
    found = {"type": "hyperdisk-ml", "zone": ZONE, "size": 500, "labels": LABELS} | properties
    return declared(DISK, name, {key: value for key, value in found.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class Pack:
    """A running pack."""

    stub: analyzer_pb2_grpc.AnalyzerStub

    def configure(self, **policies: Mapping[str, Any]) -> None:
        request = analyzer_pb2.ConfigureAnalyzerRequest()
        for name, properties in policies.items():
            level = properties.get("enforcementLevel", ADVISORY)
            request.policyConfig[name.replace("_", "-")].enforcementLevel = level
            request.policyConfig[name.replace("_", "-")].properties.update(
                {key: value for key, value in properties.items() if key != "enforcementLevel"}
            )
        self.stub.Configure(request)

    def judge(self, *resources: analyzer_pb2.AnalyzerResource) -> list[analyzer_pb2.AnalyzeDiagnostic]:
        stack = declared(STACK, "acme-dev", {})
        request = analyzer_pb2.AnalyzeStackRequest(resources=[stack, *resources])
        return list(self.stub.AnalyzeStack(request, timeout=60).diagnostics)

    def found(self, policy: str, *resources: analyzer_pb2.AnalyzerResource) -> list[tuple[int, str]]:
        return [(each.enforcementLevel, each.message) for each in self.judge(*resources) if each.policyName == policy]


@contextmanager
def started(config: Mapping[str, str] | None = None) -> Iterator[Pack]:
    """The pack in Pulumi's own policy host, with the stack configuration that the engine would hand over."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PULUMI")}
    environment |= {"PULUMI_CONFIG": json.dumps(config or {}), "PULUMI_PROJECT": "acme", "PULUMI_STACK": "dev"}
    environment |= {"PULUMI_DRY_RUN": "true"}
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:1", "policies"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port.isdigit(), port
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield Pack(stub=analyzer_pb2_grpc.AnalyzerStub(channel))
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def running() -> Iterator[Pack]:
    with started() as found:
        yield found


@pytest.fixture
def pack(running: Pack) -> Pack:
    """The running pack without a policy configuration."""
    running.configure()
    return running


def test_the_pack_is_the_rules(pack: Pack) -> None:
    info = pack.stub.GetAnalyzerInfo(analyzer_pb2.google_dot_protobuf_dot_empty__pb2.Empty())
    levels = {policy.name: policy.enforcementLevel for policy in info.policies}
    assert info.name == "spotrail"
    assert list(levels) == [INPUTS_POLICY, *SEEN, ADVICE_POLICY]
    for name, found in SEEN.items():
        assert levels[name] == (MANDATORY if found.severity is Severity.ERROR else ADVISORY)
    (shown,) = [policy for policy in info.policies if policy.name == "DISK-DEFAULT-THROUGHPUT"]
    assert "spotrail:model.throughput" in shown.remediation_steps
    assert set(shown.configSchema.properties) == {"asOf", "waivers"}


def test_a_violation_says_what_it_costs_and_what_to_do(pack: Pack) -> None:
    (found,) = [each for each in pack.judge(volume()) if each.policyName == "DISK-DEFAULT-THROUGHPUT"]
    assert found.enforcementLevel == MANDATORY
    assert found.urn == urn(DISK, "llama")
    assert "Google provisions 12,000 MiB/s for 500 GiB, 1,440.00 /month" in found.message
    assert "Set spotrail:model.throughput" in found.message
    assert "https://docs.cloud.google.com/" in found.message
    assert found.severity == analyzer_pb2.POLICY_SEVERITY_HIGH


def test_numbers_that_arrive_as_floats_are_whole_again(pack: Pack) -> None:
    (level, message), *_ = pack.found("DISK-LIMITS", volume(size=3, provisionedThroughput=400))
    assert level == MANDATORY
    assert "size 3 GiB: hyperdisk-ml takes 4 to 65,536 GiB" in message


@pytest.mark.parametrize("sentinel", SENTINELS.values(), ids=SENTINELS)
def test_an_unknown_value_is_neither_a_violation_nor_a_pass_and_stops_nothing(pack: Pack, sentinel: str) -> None:
    bad = volume("bad", size=100, provisionedThroughput=1_200_000)
    judged = pack.judge(volume(size=sentinel, provisionedThroughput=400), bad)
    limits = [(each.enforcementLevel, each.urn, each.message) for each in judged if each.policyName == "DISK-LIMITS"]
    assert [(level, place) for level, place, _ in limits] == [(MANDATORY, urn(DISK, "bad")), (ADVISORY, "")]
    assert "400 to 160,000 MiB/s" in limits[0][2]
    assert "llama: cannot tell yet: size is known after the apply" in limits[1][2]
    assert sentinel not in str(judged)
    assert {each.policyName for each in judged} >= {"DISK-NO-READER", "BUDGET-MISSING", "PRICE-MISSING"}


def test_a_secret_is_never_printed_and_keeps_a_rule_from_judging(pack: Pack) -> None:
    hidden = {SECRET_KEY: SECRET_VALUE, "value": 7654}
    judged = pack.judge(volume(size=hidden, labels=LABELS | {"owner": {SECRET_KEY: SECRET_VALUE, "value": "Hush"}}))
    assert "7654" not in str(judged)
    assert "7,654" not in str(judged)
    assert "Hush" not in str(judged)
    assert "cannot tell yet: label owner is secret" in str(judged)
    assert any("cannot tell yet: size is secret" in each.message for each in judged)


def test_what_is_undecided_stays_advisory_when_everything_is_mandatory(pack: Pack) -> None:
    pack.configure(**{name.replace("-", "_"): {"enforcementLevel": MANDATORY} for name in rules()})
    (found,) = pack.found("DISK-LIMITS", volume(size=UNSET, provisionedThroughput=400))
    assert found[0] == ADVISORY


def test_inputs_count_not_the_defaults_that_google_will_fill_in(pack: Pack) -> None:
    request = analyzer_pb2.AnalyzeRequest(type=DISK, urn=urn(DISK, "analysed"), name="analysed")
    request.properties.update({"type": "hyperdisk-ml", "zone": ZONE, "size": 500, "labels": LABELS})
    assert list(pack.stub.Analyze(request).diagnostics) == []
    (found,) = pack.found("DISK-DEFAULT-THROUGHPUT", volume("analysed", provisionedThroughput=UNSET))
    assert found[0] == MANDATORY
    (unseen,) = pack.found("DISK-DEFAULT-THROUGHPUT", volume("other", provisionedThroughput=UNSET))
    assert unseen[0] == ADVISORY


def test_a_waiver_of_the_policy_configuration(pack: Pack) -> None:
    waiver = {"urn": "*::llama", "reason": "until the big run is over", "until": "2026-12-15"}
    pack.configure(DISK_DEFAULT_THROUGHPUT={"enforcementLevel": MANDATORY, "waivers": [waiver], "asOf": "2026-12-15"})
    resources = (volume(), volume("other"))
    judged = pack.judge(*resources)
    own = [each.urn for each in judged if each.policyName == "DISK-DEFAULT-THROUGHPUT"]
    assert own == [urn(DISK, "other")]
    (advice,) = [each for each in judged if each.policyName == ADVICE_POLICY and each.urn == urn(DISK, "llama")]
    assert advice.enforcementLevel == ADVISORY
    assert "DISK-DEFAULT-THROUGHPUT" in advice.message
    assert "waived: until the big run is over, until 2026-12-15" in advice.message
    pack.configure(DISK_DEFAULT_THROUGHPUT={"enforcementLevel": MANDATORY, "waivers": [waiver], "asOf": "2026-12-16"})
    assert len(pack.found("DISK-DEFAULT-THROUGHPUT", *resources)) == 2


def test_the_waivers_of_the_stack_file_hold_in_the_pack_too() -> None:
    waivers = [
        {"rule": "DISK-DEFAULT-THROUGHPUT", "urn": "*::llama", "reason": "trial", "until": "2999-01-01"},
        {"rule": "DISK-DEFAULT-THROUGHPUT", "urn": "*::gone", "reason": "old", "until": "2020-01-01"},
    ]
    with started({"spotrail:waivers": json.dumps(waivers)}) as pack:
        judged = pack.judge(volume())
    by_policy = {each.policyName: each.message for each in judged}
    assert "DISK-DEFAULT-THROUGHPUT" not in by_policy
    assert "for *::gone (old) ended on 2020-01-01" in by_policy["STATE-WAIVER-EXPIRED"]


def test_the_severities_of_the_stack_file_hold_in_the_pack_too() -> None:
    severities = {"DISK-DEFAULT-THROUGHPUT": "info", "DISK-NO-READER": "off", "DISK-THROUGHPUT-ABOVE-FLOOR": "error"}
    dear = volume("dear", provisionedThroughput=12000)
    with started({"spotrail:severity": json.dumps(severities)}) as pack:
        judged = pack.judge(volume(), dear)
    levels = {(each.policyName, each.urn): each.enforcementLevel for each in judged}
    assert not [name for name, _ in levels if name in ("DISK-DEFAULT-THROUGHPUT", "DISK-NO-READER")]
    (advice,) = [each for each in judged if "DISK-DEFAULT-THROUGHPUT: " in each.message]
    assert (advice.policyName, advice.urn) == (ADVICE_POLICY, urn(DISK, "llama"))
    assert levels["DISK-THROUGHPUT-ABOVE-FLOOR", dear.urn] == ADVISORY


def test_a_mistake_in_the_severities_of_the_stack_file_is_told() -> None:
    with started({"spotrail:severity": '{"DISK-NO-READER": "loud"}'}) as pack:
        ((_, message),) = pack.found("DISK-LIMITS", volume())
    assert 'spotrail:severity.DISK-NO-READER is "loud"; it must be one of error, warning, info, off' in message


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"asOf": "soon"}, 'policy configuration, DISK-LIMITS.asOf is "soon"; it must be a day, as in 2026-12-15'),
        ({"waivers": [{"urn": "*"}]}, "policy configuration, DISK-LIMITS.waivers[0].reason is missing"),
    ],
)
def test_a_mistake_in_the_policy_configuration_is_told(pack: Pack, config: Mapping[str, Any], words: str) -> None:
    pack.configure(DISK_LIMITS={"enforcementLevel": MANDATORY} | config)
    ((level, message),) = pack.found("DISK-LIMITS", volume())
    assert level == MANDATORY
    assert words in message


def test_what_a_mandatory_rule_finds_less_bad_is_advice(pack: Pack) -> None:
    labels = LABELS | {"env": "prod"}
    slow = declared(VM, "eval", {"acceleratorType": "v6e-8", "zone": ZONE, "labels": labels})
    fast = declared(VM, "dev", {"acceleratorType": "v6e-8", "zone": ZONE, "labels": LABELS})
    judged = pack.judge(slow, fast)
    assert [each.urn for each in judged if each.policyName == "TPU-ON-DEMAND"] == [urn(VM, "dev")]
    advice = [each for each in judged if each.policyName == ADVICE_POLICY and each.urn == urn(VM, "eval")]
    assert any("TPU-ON-DEMAND: its chips are on demand" in each.message for each in advice)
    assert {each.enforcementLevel for each in advice} == {ADVISORY}


def test_a_disabled_rule_is_silent_in_advice_too(pack: Pack) -> None:
    pack.configure(TPU_ON_DEMAND={"enforcementLevel": analyzer_pb2.DISABLED})
    judged = pack.judge(declared(VM, "eval", {"acceleratorType": "v6e-8", "zone": ZONE}))
    assert not [each for each in judged if "TPU-ON-DEMAND" in each.message or each.policyName == "TPU-ON-DEMAND"]


def test_advice_of_one_run_is_not_told_in_the_next(pack: Pack) -> None:
    pack.judge(declared(VM, "eval", {"acceleratorType": "v6e-8", "zone": ZONE}))
    assert pack.found(ADVICE_POLICY, volume(provisionedThroughput=400)) == []


def test_one_malformed_resource_keeps_nobody_from_judging_the_others(pack: Pack) -> None:
    judged = pack.judge(volume("odd", size="lots"), volume())
    assert [each.urn for each in judged if each.policyName == "DISK-DEFAULT-THROUGHPUT"] != []
    (odd,) = [each for each in judged if each.policyName == "DISK-LIMITS"]
    assert "size is 'lots'; it must be a number" in odd.message
    assert not [each for each in judged if "Traceback" in each.message]


def test_joins_by_recorded_dependencies_and_by_the_provider(pack: Pack) -> None:
    disk = volume(accessMode="READ_WRITE_SINGLE", provisionedThroughput=400)
    provider = analyzer_pb2.AnalyzerProviderResource(type="pulumi:providers:gcp", urn=urn("pulumi:providers:gcp", "g"))
    zone = declared("pulumi:providers:gcp", "g", {"zone": "us-west1-c"})
    source = [{"sourceDisk": sdk.UNKNOWN_STRING_VALUE}]
    users = [
        declared(
            VM,
            name,
            {"acceleratorType": "v6e-8", "dataDisks": source, "labels": LABELS},
            provider=provider,
            refs={"dataDisks": [disk.urn]},
        )
        for name in ("a", "b")
    ]
    judged = pack.judge(zone, disk, *users)
    (shared,) = [each for each in judged if each.policyName == "DISK-SHARED-WRITE"]
    assert "it goes to 2 machines: a, b" in shared.message
    zones = [each.message for each in judged if each.policyName == "TPU-ZONE-UNKNOWN"]
    assert len(zones) == 2
    assert "us-west1-c" in zones[0]


def test_protect_is_seen(pack: Pack) -> None:
    found = {"location": "US-CENTRAL1", "forceDestroy": True, "labels": LABELS}
    options = analyzer_pb2.AnalyzerResourceOptions(protect=True)
    bare, safe = declared(BUCKET, "ckpt", found), declared(BUCKET, "safe-ckpt", found, options=options)
    judged = pack.judge(bare, safe)
    assert [each.urn for each in judged if each.policyName == "GCS-FORCE-DESTROY"] == [bare.urn]


def test_the_yaml_is_what_pulumi_reads() -> None:
    found = yaml.safe_load((ROOT / "policies" / "PulumiPolicy.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert found["runtime"]["name"] == "python"
    assert found["version"] == version
    assert (ROOT / "policies" / found["runtime"]["options"]["virtualenv"]).resolve() == ROOT / ".venv"


def shown(props: Mapping[str, Any], *, secret: Sequence[str] = ()) -> PolicyResource:
    options = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), list(secret))
    provider = PolicyProviderResource("pulumi:providers:gcp", {}, urn("pulumi:providers:gcp", "g"), "g")
    return PolicyResource(
        DISK, sdk.unknown_checking_proxy(dict(props)), urn(DISK, "d"), "d", options, provider, None, [], {}
    )


def test_values_keep_their_kind_and_unknown_ones_are_opaque() -> None:
    props = {
        "size": 64.0,
        "ratio": 0.5,
        "on": True,
        "list": [1.0, UNSET],
        "deep": {"x": [{"y": UNSET}]},
        "key": "s3cret",
    }
    (found,) = resource_set([shown(props, secret=["key"])], {})
    assert found.inputs == {
        "size": 64,
        "ratio": found.inputs["ratio"],
        "on": True,
        "list": (1, UNKNOWN),
        "deep": {"x": ({"y": UNKNOWN},)},
        "key": SECRET,
    }
    assert str(found.inputs["ratio"]) == "0.5"
    assert type(found.inputs["size"]) is int
    assert found.custom


def test_a_rule_that_fails_is_named_and_the_others_run() -> None:
    def broken(resource: object, context: object) -> Iterator[Any]:
        raise ZeroDivisionError("by design")

    faulty = Rule(
        id="DISK-BROKEN",
        title="A rule with a bug",
        severity=Severity.WARNING,
        applies_to=(DISK,),
        remediation="None.",
        url="https://example.com",
        check=broken,
    )
    told: list[tuple[str, str | None]] = []
    args = StackValidationArgs([shown({"type": "hyperdisk-ml", "size": 100.0})])
    RulePolicy(rule=faulty, desk=Desk())(args, lambda message, place=None: told.append((message, place)))
    ((message, place),) = told
    assert message.startswith("could not be evaluated: ZeroDivisionError: by design. This is a bug in spotrail.")
    assert place == urn(DISK, "d")


def test_policies_need_no_engine_and_start_no_server() -> None:
    found = build_policies()
    assert len({policy.name for policy in found}) == len(found) == len(SEEN) + 2
    levels = [policy.enforcement_level for policy in found if isinstance(policy, StackValidationPolicy)]
    assert set(levels) == {EnforcementLevel.MANDATORY, EnforcementLevel.ADVISORY}


def on_the_wire(value: Value) -> Any:
    """A value as the engine sends it."""
    if isinstance(value, Mapping):
        return {key: on_the_wire(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [on_the_wire(inner) for inner in value]
    if isinstance(value, Decimal):
        return float(value)
    if value is SECRET:
        return {SECRET_KEY: SECRET_VALUE, "value": "hidden"}
    return sdk.UNKNOWN_STRING_VALUE if value is UNKNOWN else value


def as_registered(found: Resource, providers: Mapping[str, Resource]) -> analyzer_pb2.AnalyzerResource:
    """A resource of an offline preview as the engine would show it to the pack."""
    provider = providers.get(found.options.provider.rpartition("::")[0])
    message = declared(
        found.type,
        found.name,
        {key: on_the_wire(value) for key, value in found.inputs.items()},
        refs=found.options.property_dependencies,
        options=analyzer_pb2.AnalyzerResourceOptions(protect=found.options.protect),
    )
    message.urn = found.urn
    if provider:
        message.provider.type, message.provider.urn = provider.type, provider.urn
    return message


def test_the_shipped_stack_is_judged_alike_by_the_pack_and_by_the_command(pack: Pack) -> None:
    stack = preview("prod", ROOT).resources
    today = datetime.date(2026, 11, 29)
    expected = run_rules(stack, estimate(stack, Usage(), shipped_book(), today), today).findings
    levels = {Severity.ERROR: MANDATORY, Severity.WARNING: ADVISORY, Severity.INFO: ADVISORY}
    config = {name: {"asOf": str(today), "enforcementLevel": levels[found.severity]} for name, found in SEEN.items()}
    pack.configure(**{name.replace("-", "_"): value for name, value in config.items()})
    providers = {found.urn: found for found in stack if found.type.startswith("pulumi:providers:")}
    request = analyzer_pb2.AnalyzeStackRequest(resources=[as_registered(found, providers) for found in stack])
    told = pack.stub.AnalyzeStack(request, timeout=60).diagnostics
    assert [each for each in told if each.enforcementLevel == MANDATORY] == []
    assert sorted((each.policyName, each.urn) for each in told) == sorted(
        (finding.rule.id, finding.urn) for finding in expected
    )
