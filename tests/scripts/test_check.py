"""`spotrail check`: one verdict and one exit code from every source and in every format."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from scripts.check import TABLE, WRITERS

AS_OF = ("--as-of", "2026-11-29")
FORMATS = (TABLE, *WRITERS)
COSTS_ONLY = ("infracost-json", "focus-csv")
Command: TypeAlias = Callable[..., Any]
Text: TypeAlias = Callable[[str], bytes]
ROOT = Path(__file__).parent.parent.parent
DISK = "gcp:compute/disk:Disk"
URN = f"urn:pulumi:dev::demo::{DISK}::volume"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
VOLUME = {
    "type": "hyperdisk-ml",
    "size": 200,
    "provisionedThroughput": 400,
    "accessMode": "READ_ONLY_MANY",
    "zone": "us-central1-b",
    "labels": {"owner": "ml", "env": "dev", "ttl": "3d", "managed-by": "spotrail"},
}
"""64.00 a month."""


def record(protect: bool = False, **more: object) -> dict[str, Any]:
    inputs = {**VOLUME, **more}
    return {
        "urn": URN,
        "custom": True,
        "type": DISK,
        "id": "x",
        "protect": protect,
        "inputs": inputs,
        "outputs": inputs,
    }


def state(**more: object) -> bytes:
    return json.dumps({"version": 3, "deployment": {"resources": [record(False, **more)]}}).encode()


def preview(op: str = "create", same: int = 0, protect: bool = False) -> bytes:
    sides = {"newState" if op == "create" else "oldState": record(protect)}
    step = {"op": op, "urn": URN, **sides, "detailedDiff": None}
    return json.dumps({"steps": [step], "duration": 1, "changeSummary": {op: 1, "same": same}}).encode()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("content", "options", "code"),
    [
        (state(), (), 0),
        (state(), ("--budget", "64"), 0),
        (state(), ("--budget", "63.99"), 3),
        (state(), ("--budget", "1000", "--budget", "label:env=dev=10"), 3),
        (state(), ("--budget", f"type:{DISK}=10"), 3),
        (state(provisionedThroughput=10), (), 3),
        (state(size=UNKNOWN), ("--budget", "1000"), 4),
        (state(zone="europe-west4-a"), (), 4),
        (preview(), ("--budget", "change=64"), 0),
        (preview(), ("--budget", "change=63"), 3),
        (preview(same=4), ("--budget", "1000000"), 4),
        (preview("delete"), (), 0),
        (preview("delete", protect=True), (), 3),
        (b"{", (), 2),
        (state(size="many"), (), None),
        (state(), ("--budget", "much"), 2),
    ],
)
def test_the_exit_code_is_the_same_in_every_format(
    spotrail: Command, form: str, content: bytes, options: tuple[str, ...], code: int | None
) -> None:
    ran = spotrail("check", "-", "--format", form, *options, *AS_OF, stdin=content)
    if code is None:
        code = spotrail("check", "-", *options, *AS_OF, stdin=content).returncode
        assert code in (2, 3)
    assert ran.returncode == code
    assert (ran.stdout == "") is (code == 2)
    assert ran.stderr.startswith("error: ") if code == 2 else ran.stderr == ""
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("form", [form for form in FORMATS if form not in COSTS_ONLY])
def test_a_broken_budget_is_in_every_format_that_has_findings(spotrail: Command, form: str) -> None:
    said = spotrail("check", "-", "--format", form, "--budget", "10", *AS_OF, stdin=state()).stdout
    assert "54.00" in said


@pytest.mark.parametrize("form", ["json", "sarif", "infracost-json"])
def test_json_is_one_strict_document(spotrail: Command, form: str) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    ran = spotrail("check", "prod", "--format", form, "--budget", "1", "--quiet", *AS_OF)
    assert isinstance(json.loads(ran.stdout, parse_constant=refuse), dict)
    assert (ran.returncode, ran.stderr) == (3, "")


def test_the_verdict_is_the_first_word(spotrail: Command) -> None:
    for options, word in (((), "PASS"), (("--budget", "1"), "FAIL"), (("--budget", "change=1"), "UNDECIDED")):
        assert spotrail("check", "-", *options, *AS_OF, stdin=state()).stdout.split()[0] == word


def test_allowed_stale_prices_are_not_called_fresh(spotrail: Command) -> None:
    said = spotrail("check", "dev", "--budget", "5000", "--allow-stale", *AS_OF).stdout
    assert "prices of any age" in said
    assert "prices fresh" not in said


def test_what_a_preview_hides_is_not_called_missing(spotrail: Command) -> None:
    found = spotrail("check", "-", "--format", "json", *AS_OF, stdin=preview(same=7)).document["findings"]
    shown = {each["rule"]: each["severity"] for each in found}
    assert shown["DISK-NO-READER"] == "info"
    plainly = spotrail("check", "-", "--format", "json", *AS_OF, stdin=preview()).document["findings"]
    assert {each["rule"]: each["severity"] for each in plainly}["DISK-NO-READER"] == "warning"


def test_an_environment_is_judged_like_its_files(spotrail: Command, preview_text: Text, state_text: Text) -> None:
    options = ("--format", "json", "--allow-stale", "--budget", "5000", *AS_OF)
    program = spotrail("check", "dev", *options)
    preview_file = spotrail("check", "-", *options, stdin=preview_text("dev"))
    state_file = spotrail("check", "-", *options, stdin=state_text("dev"))
    assert [ran.returncode for ran in (program, preview_file, state_file)] == [0, 0, 0]
    found = [
        {(each["rule"], each["urn"], each["monthly"]) for each in ran.document["findings"]}
        for ran in (program, preview_file, state_file)
    ]
    assert found[0] == found[1] == found[2] != set()


def test_a_preview_says_that_it_has_no_policy_results(spotrail: Command) -> None:
    assert "no policy results in this input" in spotrail("check", "-", *AS_OF, stdin=preview()).stdout


def test_what_a_policy_pack_said_in_an_event_log_counts(spotrail: Command) -> None:
    said = {
        "resourceUrn": URN,
        "message": "no disks here",
        "policyName": "no-disks",
        "policyPackName": "acme",
        "enforcementLevel": "mandatory",
    }
    events = (
        {"sequence": 1, "preludeEvent": {"config": {}}},
        {"sequence": 2, "shinyNewEvent": {}},
        {"sequence": 3, "policyEvent": said},
        {"sequence": 4, "summaryEvent": {"maybeCorrupt": False, "durationSeconds": 1, "resourceChanges": {}}},
    )
    content = "\n".join(map(json.dumps, events)).encode()
    ran = spotrail("check", "-", *AS_OF, stdin=content)
    assert ran.returncode == 3
    assert "STATE-PULUMI-POLICY  volume  acme/no-disks: no disks here" in ran.stdout
    assert "shinyNewEvent" in ran.stdout


@pytest.mark.parametrize("shape", ["list", "stack file"])
def test_waivers_may_stand_in_a_file(spotrail: Command, tmp_path: Path, shape: str) -> None:
    waiver = '{rule: DISK-LIMITS, urn: "*::volume", reason: we know, until: 2026-12-15}'
    text = f"- {waiver}\n" if shape == "list" else f"config:\n  spotrail:waivers:\n    - {waiver}\n"
    (tmp_path / "waivers.yaml").write_text(text)
    options = ("--waivers", str(tmp_path / "waivers.yaml"), *AS_OF)
    ran = spotrail("check", "-", *options, stdin=state(provisionedThroughput=10))
    assert ran.returncode == 0
    assert "waived: DISK-LIMITS  volume (we know, until 2026-12-15)" in ran.stdout


@pytest.mark.parametrize("text", ["{}", "waivers: []", "config: 5", "config: []"])
def test_a_file_that_cannot_waive_anything_is_refused(spotrail: Command, tmp_path: Path, text: str) -> None:
    """Its author believes that something is waived."""
    (tmp_path / "waivers.yaml").write_text(text)
    ran = spotrail("check", "-", "--waivers", str(tmp_path / "waivers.yaml"), stdin=state())
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "it has no spotrail:waivers, so it waives nothing; a file of waivers is a list" in ran.stderr


@pytest.mark.parametrize("text", ["", "[]", "config: {spotrail:owner: me}", "config: {spotrail:waivers: []}"])
def test_a_file_of_no_waivers_waives_nothing(spotrail: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "waivers.yaml").write_text(text)
    options = ("--waivers", str(tmp_path / "waivers.yaml"), *AS_OF)
    assert spotrail("check", "-", *options, stdin=state(provisionedThroughput=10)).returncode == 3


@pytest.mark.parametrize("command", [("check", ""), ("check", " "), ("estimate", ""), ("diff", "", "-")])
def test_an_empty_name_is_no_source(spotrail: Command, command: tuple[str, ...]) -> None:
    ran = spotrail(*command, stdin=state())
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "names nothing; name a file, or - for standard input" in ran.stderr


def test_a_rule_may_be_given_another_severity_in_the_stack_file(spotrail: Command) -> None:
    document = {**json.loads(preview()), "config": {"spotrail:severity": json.dumps({"DISK-NO-READER": "error"})}}
    assert spotrail("check", "-", *AS_OF, stdin=preview()).returncode == 0
    ran = spotrail("check", "-", *AS_OF, stdin=json.dumps(document).encode())
    assert ran.returncode == 3
    assert "✗ DISK-NO-READER" in ran.stdout


def test_a_wrong_waiver_names_its_file(spotrail: Command, tmp_path: Path) -> None:
    file = tmp_path / "waivers.yaml"
    file.write_text("- {rule: DISK-LIMTS, urn: x, reason: y, until: 2026-12-15}\n")
    ran = spotrail("check", "-", "--waivers", str(file), stdin=state())
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"{file}[0].rule" in ran.stderr
    assert "DISK-LIMITS" in ran.stderr


def test_a_github_step_gets_annotations_and_a_summary(spotrail: Command, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    options = ("--format", "github", "--budget", "10", *AS_OF)
    ran = spotrail("check", "-", *options, stdin=state(), GITHUB_STEP_SUMMARY=str(summary))
    assert "::error " in ran.stdout
    assert summary.read_text(encoding="utf-8").startswith("before\n<!-- spotrail report: demo/dev -->")
    ran = spotrail("check", "-", *options, stdin=state(), GITHUB_STEP_SUMMARY=str(tmp_path / "no" / "folder"))
    assert ran.returncode == 2
    assert "GITHUB_STEP_SUMMARY names" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "prd"), ("prd", "no such file", "Did you mean prod")),
        (("check", "none.json"), ("none.json",)),
        (("check",), ("SOURCE",)),
        (("check", "dev", "--format", "xml"), ("xml", "sarif")),
        (("check", "dev", "--budget", "lable:env=dev=1"), ("lable", "Did you mean label")),
        (("check", "dev", "--waivers", "none.yaml"), ("none.yaml",)),
        (("chekc", "dev"), ("chekc", "check")),
    ],
)
def test_bad_usage_says_what_to_do(spotrail: Command, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    ran = spotrail(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    for word in words:
        assert word in ran.stderr


def test_a_file_beside_an_environment_is_the_file(spotrail: Command, tmp_path: Path) -> None:
    (tmp_path / "dev").write_bytes(state())
    assert "PASS  dev  64.00 USD /month" in spotrail("check", "dev", *AS_OF, cwd=tmp_path).stdout
    assert "PASS  dev  64.00 USD /month" in spotrail("check", "./dev", *AS_OF, cwd=tmp_path).stdout


def test_help_teaches(spotrail: Command) -> None:
    text = " ".join(spotrail("check", "--help").stdout.split())
    for word in (
        "spotrail check prod --budget 80000",
        "pulumi preview --json --show-sames |",
        "label:env=dev",
        *FORMATS,
    ):
        assert word in text


def test_a_file_is_judged_without_the_program_and_without_pulumi(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(state())
    code = (
        "import sys; from scripts.cli import run; code = run(['check', sys.argv[1], '--as-of', '2026-11-29']);"
        "loaded = {name.partition('.')[0] for name in sys.modules};"
        "print(code, sorted(loaded & {'infra', 'pulumi', 'grpc', 'jax', 'numpy'}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "state.json")], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert ran.stdout.splitlines()[-1] == "0 []"


def test_the_advice_on_a_zone_does_not_repeat_the_finding(spotrail: Command) -> None:
    inputs = {"acceleratorType": "v6e-8", "zone": "us-central1-a", "schedulingConfig": {"spot": True}}
    token = "gcp:tpu/v2Vm:V2Vm"
    slice = {"urn": f"urn:pulumi:dev::demo::{token}::t", "custom": True, "type": token, "inputs": inputs}
    state = json.dumps({"version": 3, "deployment": {"resources": [slice]}}).encode()
    findings = json.loads(spotrail("check", "-", "--format", "json", stdin=state).stdout)["findings"]
    (found,) = (each for each in findings if each["rule"] == "TPU-ZONE-UNKNOWN")
    assert "newer than the table: spotrail:extra_zones" in found["message"]
    assert "waive this finding" in found["remediation"]
    assert not {"table", "newer", "listed"} & set(found["remediation"].replace(",", "").split())
