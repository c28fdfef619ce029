"""The policy pack inside Pulumi's own engine: what it stops, what it lets through, and what it cannot tell yet."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from policies.readers.errors import ReadError
from policies.rules.registry import rules
from tests.engine.conftest import Standing
from tests.engine.stand import ROOT, Ended, Stand, language_host
from tests.engine.walk import reading

PACK = ROOT / "policies" / "pulumi-analyzer-spotrail"
HOST = "pulumi-language-python"
ON_DEMAND = {"slices": {"trainer": {"capacity": "on-demand"}}}
WAIVER = {"rule": "TPU-ON-DEMAND", "urn": "*trainer*", "reason": "a deadline", "until": "2999-01-01"}
UNKNOWN = """
import pulumi_gcp as gcp

network = gcp.compute.Network("later", name="later")
runtime = network.self_link.apply(lambda link: "v2-alpha-tpuv5-lite")
gcp.tpu.V2Vm("pod", name="pod", zone="us-central1-b", accelerator_type="v6e-8", runtime_version=runtime)
"""
"""The runtime of a slice is known after the apply, and is then the wrong one. That it is on demand is known before."""


def judged(stand: Stand, command: str, pack: Path = PACK, *options: str) -> Ended:
    """`pulumi preview` or `pulumi up`, with the pack."""
    with language_host(stand.folder) as port:
        program = (f"--client=127.0.0.1:{port}", "--exec-kind=auto.inline", "--non-interactive")
        return stand.cli(command, *program, "--policy-pack", str(pack), *options)


@pytest.fixture(scope="module")
def on_demand(standing: Standing) -> Stand:
    return standing("dev", ON_DEMAND)


@pytest.fixture(scope="module")
def unknown(standing: Standing) -> Stand:
    return standing("dev", program=UNKNOWN)


@pytest.mark.parametrize("command", ["preview", "up --yes"])
def test_a_mandatory_violation_stops_the_command_with_message_and_remediation(on_demand: Stand, command: str) -> None:
    ended = judged(on_demand, command)
    rule = rules()["TPU-ON-DEMAND"]
    assert ended.code != 0
    found = section(ended, "[mandatory]", rule.id)
    assert rule.title in found
    assert "its chips are on demand: 15,768.00 /month, 12,306.87 /month more than spot" in found
    assert rule.remediation in found
    assert rule.url in found


def test_an_up_that_is_stopped_has_made_nothing(on_demand: Stand) -> None:
    assert on_demand.state() == {}


def test_with_json_the_exit_code_alone_tells(on_demand: Stand) -> None:
    ended = on_demand.preview_file("--policy-pack", str(PACK))
    assert ended.code != 0
    assert "TPU-ON-DEMAND" not in ended.stdout
    # And so the readers take it for what it is.
    with pytest.raises(ReadError, match="the preview failed with 1 error"):
        reading(ended.stdout, "preview.json")


def test_a_waiver_lets_it_through_and_is_said(standing: Standing) -> None:
    ended = judged(standing("dev", {**ON_DEMAND, "waivers": [WAIVER]}), "preview")
    assert ended.code == 0, ended.said
    assert "[mandatory]" not in ended.said
    found = section(ended, "[advisory]", "SPOTRAIL-ADVICE")
    assert "TPU-ON-DEMAND" in found
    assert "a deadline" in found


def test_a_mandatory_rule_that_cannot_tell_yet_advises_and_the_others_go_on(unknown: Stand) -> None:
    ended = judged(unknown, "preview")
    assert "pod: cannot tell yet: runtimeVersion is known after the apply" in section(
        ended, "[advisory]", "TPU-RUNTIME"
    )
    assert not section(ended, "[mandatory]", "TPU-RUNTIME")
    # Another mandatory rule still stops the preview.
    assert "its chips are on demand" in section(ended, "[mandatory]", "TPU-ON-DEMAND")
    assert ended.code != 0


def test_at_up_it_can_tell_and_is_mandatory(unknown: Stand) -> None:
    ended = judged(unknown, "up", PACK, "--yes", "--skip-preview")
    assert ended.code != 0
    assert "v2-alpha-tpuv5-lite" in section(ended, "[mandatory]", "TPU-RUNTIME")


def test_the_folder_is_a_pack_where_the_language_host_is_and_says_what_is_missing_where_it_is_not(
    on_demand: Stand, pulumi: Path
) -> None:
    ended = judged(on_demand, "preview", ROOT / "policies")
    assert ended.code != 0
    hosted = shutil.which(HOST) or os.access(pulumi.with_name(HOST), os.X_OK)
    if hosted:
        assert rules()["TPU-ON-DEMAND"].remediation in section(ended, "[mandatory]", "TPU-ON-DEMAND")
    else:
        assert "language" in ended.said
        assert "python" in ended.said


def section(ended: Ended, level: str, policy: str) -> str:
    """The paragraph of the policy at that level, in what the CLI printed; empty where there is none."""
    lines = ended.stdout.splitlines()
    starts = [place for place, line in enumerate(lines) if level in line and policy in line.split()]
    if not starts:
        return ""
    rest = lines[starts[0] + 1 :]
    ends = [place for place, line in enumerate(rest) if line.strip().startswith("- [") or not line.startswith("   ")]
    return "\n".join([lines[starts[0]], *(line.strip() for line in rest[: ends[0] if ends else None])])
