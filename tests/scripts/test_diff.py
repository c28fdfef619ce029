"""`spotrail diff`: two files, estimates or environments side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pytest

AS_OF = ("--as-of", "2026-11-29")
JSON = ("--format", "json", *AS_OF)
Command: TypeAlias = Callable[..., Any]
Text: TypeAlias = Callable[[str], bytes]
DISK = "gcp:compute/disk:Disk"


def state(**throughputs: int) -> bytes:
    """A stack of Hyperdisk ML volumes of 200 GiB: 16.00 each, and 0.12 for each MiB/s."""
    resources = [
        {
            "urn": f"urn:pulumi:dev::demo::{DISK}::{name}",
            "custom": True,
            "type": DISK,
            "id": name,
            "inputs": {"type": "hyperdisk-ml", "size": 200, "provisionedThroughput": mibps, "zone": "us-central1-b"},
        }
        for name, mibps in throughputs.items()
    ]
    return json.dumps({"version": 3, "deployment": {"resources": resources}}).encode()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "main.json").write_bytes(state(stays=400, grows=400, goes=400))
    (tmp_path / "branch.json").write_bytes(state(stays=400, grows=1200, comes=400))
    return tmp_path


def test_what_moves_has_a_line_and_the_total(spotrail: Command, files: Path) -> None:
    """64 to 160; 64 comes; 64 goes; 64 stays."""
    text = spotrail("diff", "main.json", "branch.json", *AS_OF, cwd=files).stdout
    rows = {line.split()[1]: line.split()[-3:] for line in text.splitlines() if line.strip()[:2] in ("~ ", "+ ", "- ")}
    assert rows == {
        "grows": ["64.00", "160.00", "+96.00"],
        "comes": ["-", "64.00", "+64.00"],
        "goes": ["64.00", "-", "-64.00"],
    }
    assert text.startswith("spotrail diff main.json branch.json")
    assert "before 192.00 USD /month · after 288.00 USD /month" in text


def test_json_has_both_totals_and_the_steps(spotrail: Command, files: Path) -> None:
    found = spotrail("diff", "main.json", "branch.json", *JSON, cwd=files).document
    assert (found["before"]["monthly"], found["monthly"], found["delta"]["monthly"]) == ("192.00", "288.00", "96.00")
    ops = {each["name"]: each["op"] for each in found["resources"]}
    assert ops == {"stays": "same", "grows": "update", "goes": "delete", "comes": "create"}


def test_the_same_twice_has_no_difference(spotrail: Command, files: Path) -> None:
    ran = spotrail("diff", "main.json", "main.json", *AS_OF, cwd=files)
    assert ran.returncode == 0
    assert "0.00 USD /month by this change" in ran.stdout
    assert "3 of an unchanged price" in ran.stdout
    assert "grows" not in ran.stdout


@pytest.mark.parametrize("stack", ["dev", "prod"])
def test_program_preview_state_and_kept_estimate_are_the_same(
    spotrail: Command, preview_text: Text, state_text: Text, tmp_path: Path, stack: str
) -> None:
    kept = spotrail("plan", stack, *JSON).stdout
    (tmp_path / "kept.json").write_text(kept)
    for content in (preview_text(stack), state_text(stack), kept.encode()):
        for first, second in ((stack, "-"), ("-", str(tmp_path / "kept.json"))):
            found = spotrail("diff", first, second, *JSON, stdin=content).document
            assert found["delta"]["monthly"] == "0.00"
            assert found["monthly"] == json.loads(kept)["monthly"]
            assert {each["op"] for each in found["resources"]} == {"same"}


@pytest.mark.parametrize(
    ("as_of", "options", "code"),
    [
        ("2026-11-29", (), 0),
        ("2026-11-29", ("--strict",), 0),
        ("2028-01-01", (), 0),
        ("2028-01-01", ("--strict",), 4),
        ("2028-01-01", ("--strict", "--allow-stale"), 0),
    ],
)
def test_strict_cannot_decide_on_stale_prices(
    spotrail: Command, files: Path, as_of: str, options: tuple[str, ...], code: int
) -> None:
    ran = spotrail("diff", "main.json", "branch.json", "--as-of", as_of, *options, cwd=files)
    assert ran.returncode == code


def preview(hidden: int, stack: str = "dev") -> bytes:
    """A preview that takes `grows` from 400 to 1,200 MiB/s and hides the others."""
    old, new = (json.loads(state(grows=mibps))["deployment"]["resources"][0] for mibps in (400, 1200))
    step = {"op": "update", "urn": old["urn"], "oldState": old, "newState": new}
    text = json.dumps({"steps": [step], "changeSummary": {"update": 1, "same": hidden}})
    return text.replace("urn:pulumi:dev::", f"urn:pulumi:{stack}::").encode()


def test_a_state_completes_the_preview_of_its_stack(spotrail: Command, files: Path) -> None:
    """Of 192.00 the preview shows 64.00, and takes that to 160.00."""
    (files / "preview.json").write_bytes(preview(2))
    found = spotrail("diff", "main.json", "preview.json", *JSON, cwd=files).document
    assert (found["before"]["monthly"], found["monthly"], found["delta"]["monthly"]) == ("192.00", "288.00", "96.00")


def test_previews_of_two_stacks_that_hide_resources_are_refused(spotrail: Command, files: Path) -> None:
    (files / "dev.json").write_bytes(preview(2))
    (files / "prod.json").write_bytes(preview(2, "prod"))
    ran = spotrail("diff", "dev.json", "prod.json", cwd=files)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "dev.json hides 2 resources" in ran.stderr
    assert "dev.json is of demo/dev and prod.json of demo/prod" in ran.stderr
    assert "--show-sames" in ran.stderr


def test_two_environments_are_compared(spotrail: Command) -> None:
    one, two = (Decimal(spotrail("plan", stack, *JSON).document["monthly"]) for stack in ("dev", "staging"))
    assert Decimal(spotrail("diff", "dev", "staging", *JSON).document["delta"]["monthly"]) == two - one


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("diff", "-", "-"), "A and B cannot both be standard input"),
        (("diff", "main.json"), "Missing argument 'B'"),
        (("diff", "main.json", "none.json"), "none.json"),
        (("diff", "main.json", "prd"), "prd: no such file, and no environment either"),
        (("diff", "main.json", "broken.json"), "broken.json: is no spotrail.estimate/1"),
        (("diff", "main.json", "other.json"), "Terraform"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    spotrail: Command, files: Path, arguments: tuple[str, ...], words: str
) -> None:
    (files / "broken.json").write_text('{"schema": "spotrail.estimate/1", ')
    (files / "other.json").write_text('{"terraform_version": "1.9"}')
    ran = spotrail(*arguments, cwd=files)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr


def test_help_teaches(spotrail: Command) -> None:
    text = " ".join(spotrail("diff", "--help").stdout.split())
    for word in ("spotrail diff main.json branch.json", "- for standard input", "exits 0"):
        assert word in text
