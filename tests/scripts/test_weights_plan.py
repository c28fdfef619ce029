"""`spotrail weights-plan` as a command: options, formats, exit codes, and how mistakes are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.scripts.conftest import Command

FLEET = ("--size", "140GiB", "--replicas", "16", "--restarts-per-day", "8")
AS_OF = ("--as-of", "2026-11-29")


def document(spotrail: Command, *arguments: str) -> dict[str, Any]:
    return spotrail("weights-plan", *FLEET, *arguments, "--format", "json", *AS_OF).document


def test_the_table_is_on_standard_output(spotrail: Command) -> None:
    ran = spotrail("weights-plan", *FLEET, *AS_OF)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("spotrail weights-plan 140 GiB")
    assert "Boot download is cheapest and fastest" in ran.stdout


def test_a_volume_of_2400_for_one_replica_at_a_time(spotrail: Command) -> None:
    found = document(spotrail, "--at-once", "1", "--throughput", "2400")
    disk = found["ways"][0]
    # 140 GiB by 2,400 MiB/s; 147 GiB at 0.08 and 2,400 at 0.12, by the book of the package
    assert disk["start"]["seconds"].startswith("59.7333")
    assert {line["name"]: line["monthly"] for line in disk["lines"]}["volume throughput"] == "288.00"
    assert {line["name"]: line["monthly"] for line in disk["lines"]}["volume capacity"] == "11.76"
    assert found["fastest"] == "disk"


def test_options_reach_the_answer(spotrail: Command) -> None:
    found = document(
        spotrail,
        *("--shape", "v6e-16", "--hosts-per-replica", "2", "--at-once", "2", "--reads", "all", "--no-snapshot"),
        *(
            "--model-updates-per-month",
            "0",
            "--versions",
            "3",
            "--bucket-location",
            "US-EAST1",
            "--capacity",
            "on-demand",
        ),
        *(
            "--vm-cap",
            "1000",
            "--fuse-rate",
            "500",
            "--download-rate",
            "700",
            "--ram-rate",
            "4000",
            "--bucket-rate",
            "100",
        ),
        *(
            "--headroom",
            "0",
            "--overlap-hours",
            "0",
            "--object-size",
            "2",
            "--fuse-chunk",
            "100",
            "--download-part",
            "64",
        ),
    )
    assert {each["option"]: each["value"] for each in found["assumptions"]} == {
        "--vm-cap": "1000",
        "--fuse-rate": "500",
        "--download-rate": "700",
        "--ram-rate": "4000",
        "--bucket-rate": "100",
        "--headroom": "0",
        "--overlap-hours": "0",
        "--object-size": "2",
        "--fuse-chunk": "100",
        "--download-part": "64",
    }
    assert {each["source"] for each in found["assumptions"]} == {"given"}
    fleet = found["fleet"]
    assert (fleet["hosts"], fleet["bucket"], fleet["whole"], fleet["snapshot"]) == ("2", "us-east1", True, False)
    assert found["volume"]["gib"] == "140"
    names = {line["name"] for line in found["ways"][0]["lines"]}
    assert not {name for name in names if "snapshot" in name or "second volume" in name}


def test_a_page_goes_into_a_file(spotrail: Command, tmp_path: Path) -> None:
    ran = spotrail("weights-plan", *FLEET, "--format", "html", "--output", str(tmp_path / "plan.html"), *AS_OF)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert "<svg" in (tmp_path / "plan.html").read_text(encoding="utf-8")


def test_a_missing_price_is_exit_4(spotrail: Command) -> None:
    ran = spotrail("weights-plan", *FLEET, "--zone", "us-east5-b", *AS_OF)
    assert (ran.returncode, ran.stderr) == (4, "")
    assert "Which is cheapest cannot be said, Hyperdisk ML lacks a price" in ran.stdout
    assert "no on-demand price for disk.hyperdisk-ml.throughput in us-east5-b, us-east5 or global" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--size", "140"), "'140' is no size"),
        (("--size", "140gib"), "Did you mean 140GiB?"),
        (("--size", "900TiB"), "hyperdisk-ml takes 4 to 65,536 GiB"),
        (("--replicas", "0"), "0 is not in the range"),
        (("--replicas", "3000"), "has at most 2,500 readers"),
        (("--restarts-per-day", "0"), "'0': it is above 0"),
        (("--restarts-per-day", "often"), "'often' is no number"),
        (("--at-once", "17"), "there are 16 replicas"),
        (("--throughput", "399"), "takes 400 to 235,200 MiB/s"),
        (("--shape", "v6e8"), "Did you mean v6e-8?"),
        (("--zone", "us-central1-a"), "v6e is not listed in us-central1-a"),
        (("--headroom", "-1"), "'-1': it is from 0 to 10"),
        (("--fuse-rate", "0"), "'0': it is above 0"),
        (("--overlap-hours", "731"), "it is from 0 to 730"),
    ],
)
def test_mistakes_are_exit_2(arguments: tuple[str, ...], message: str, spotrail: Command) -> None:
    ran = spotrail("weights-plan", *FLEET, *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in " ".join(ran.stderr.split())


@pytest.mark.parametrize("option", ["--size", "--replicas", "--restarts-per-day"])
def test_what_is_planned_for_must_be_said(option: str, spotrail: Command) -> None:
    words = list(FLEET)
    place = words.index(option)
    ran = spotrail("weights-plan", *words[:place], *words[place + 2 :])
    assert ran.returncode == 2
    assert f"Missing option '{option}'" in ran.stderr
