"""`spotrail estimate` on the files of Pulumi: the same figures as the program, and nothing taken for what it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pytest

AS_OF = ("--as-of", "2026-11-29")
JSON = ("--format", "json", *AS_OF)
STACKS = ("dev", "staging", "prod")
Command: TypeAlias = Callable[..., Any]
Text: TypeAlias = Callable[[str], bytes]
URN = "urn:pulumi:dev::demo::gcp:compute/disk:Disk::volume"
VOLUME = {"type": "hyperdisk-ml", "size": 200, "provisionedThroughput": 400, "zone": "us-central1-b"}


def state_of(**inputs: object) -> dict[str, Any]:
    return {"urn": URN, "custom": True, "type": "gcp:compute/disk:Disk", "id": "x", "inputs": inputs, "outputs": {}}


def exported(*resources: dict[str, Any], **more: object) -> bytes:
    return json.dumps({"version": 3, "deployment": {"resources": resources, **more}}).encode()


def previewed(*steps: dict[str, Any], same: int = 0) -> bytes:
    summary = {"same": same} if same else {}
    return json.dumps({"steps": steps, "duration": 1, "changeSummary": summary}).encode()


UPDATE = {
    "op": "update",
    "urn": URN,
    "oldState": state_of(**VOLUME),
    "newState": state_of(**{**VOLUME, "provisionedThroughput": 1200}),
    "detailedDiff": {"provisionedThroughput": {"kind": "update", "inputDiff": False}},
}
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
CREATE_UNKNOWN = {"op": "create", "urn": URN, "newState": state_of(**{**VOLUME, "size": UNKNOWN})}


@pytest.mark.parametrize("stack", STACKS)
def test_program_preview_and_state_give_the_same_to_the_last_digit(
    spotrail: Command, preview_text: Text, state_text: Text, stack: str
) -> None:
    program = spotrail("plan", stack, *JSON).document
    preview = spotrail("estimate", "-", *JSON, stdin=preview_text(stack)).document
    state = spotrail("estimate", "-", *JSON, stdin=state_text(stack)).document
    assert Decimal(program["monthly"]) > 1000
    for found in (preview, state):
        for field in ("monthly", "hourly", "complete", "fresh", "currency", "price_book"):
            assert found[field] == program[field], field
        assert prices(found) == prices(program)
    assert preview["before"]["monthly"] == "0.00"
    assert preview["delta"]["monthly"] == program["monthly"]
    assert state["before"] is None


def prices(document: dict[str, Any]) -> dict[str, tuple[str, list[dict[str, str]]]]:
    return {found["urn"]: (found["monthly"], found["components"]) for found in document["resources"]}


def test_a_change_has_both_sides_and_the_difference(spotrail: Command) -> None:
    """From 16 + 400 x 0.12 = 64 to 16 + 1200 x 0.12 = 160."""
    found = spotrail("estimate", "-", *JSON, stdin=previewed(UPDATE)).document
    assert (found["before"]["monthly"], found["monthly"], found["delta"]["monthly"]) == ("64.00", "160.00", "96.00")
    table = spotrail("estimate", "-", *AS_OF, stdin=previewed(UPDATE)).stdout
    assert "+96.00 USD /month by this change" in table
    assert "before 64.00 USD /month · after 160.00 USD /month" in table


def test_a_file_is_named_in_the_heading_and_in_the_next_step(spotrail: Command, tmp_path: Path) -> None:
    (tmp_path / "my state.json").write_bytes(exported(state_of(**VOLUME)))
    table = spotrail("estimate", "my state.json", *AS_OF, cwd=tmp_path).stdout
    assert table.startswith("spotrail estimate my state.json")
    assert "dev costs 64.00 USD /month" in table
    assert "Next: spotrail check 'my state.json' --budget" in table


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_redirected_output_of_powershell_is_read(spotrail: Command, encoding: str) -> None:
    content = exported(state_of(**VOLUME)).decode().encode(encoding)
    assert spotrail("estimate", "-", *JSON, stdin=content).document["monthly"] == "64.00"


def test_text_after_the_json_is_told(spotrail: Command) -> None:
    found = spotrail("estimate", "-", *JSON, stdin=exported(state_of(**VOLUME)) + b"\nUpdate plan written to plan\n")
    assert found.document["monthly"] == "64.00"
    assert any("after the JSON" in note for note in found.document["notes"])


def test_an_interrupted_creation_is_possible_and_outside_the_total(spotrail: Command) -> None:
    pending = [{"type": "creating", "resource": state_of(**VOLUME)}]
    ran = spotrail("estimate", "-", *JSON, stdin=exported(pending_operations=pending))
    assert ran.document["monthly"] == "0.00"
    assert any("possible 64.00 a month: interrupted while creating volume" in note for note in ran.document["notes"])


def test_hidden_resources_leave_the_total_unknown(spotrail: Command) -> None:
    found = spotrail("estimate", "-", *JSON, stdin=previewed(UPDATE, same=4)).document
    assert (found["monthly"], found["complete"], found["delta"]["monthly"]) == (None, False, "96.00")
    assert any("--show-sames" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("steps", "options", "code"),
    [
        ((UPDATE,), (), 0),
        ((UPDATE,), ("--strict",), 0),
        ((CREATE_UNKNOWN,), (), 0),
        ((CREATE_UNKNOWN,), ("--strict",), 4),
    ],
)
def test_it_shows_and_exits_0_unless_it_is_strict(
    spotrail: Command, steps: tuple[dict[str, Any], ...], options: tuple[str, ...], code: int
) -> None:
    labelled = json.loads(
        previewed(*steps).replace(b'"zone":', b'"labels": {"owner": "a", "env": "b", "ttl": "3d"}, "zone":')
    )
    content = json.dumps(labelled).encode()
    for form in ("table", "json"):
        assert spotrail("estimate", "-", "--format", form, *options, *AS_OF, stdin=content).returncode == code


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"[1]", "JSON list"),
        (b"error: no stack selected\n", "no JSON"),
        (b'{"steps": [', "line 1"),
        (b'{"format_version": "1.2", "terraform_version": "1.9"}', "Terraform"),
    ],
)
def test_what_is_no_file_of_pulumi_is_refused_by_name(spotrail: Command, content: bytes, words: str) -> None:
    ran = spotrail("estimate", "-", *AS_OF, stdin=content)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert words in ran.stderr


@pytest.mark.parametrize("name", ["none.json", "tests", "dev"])
def test_a_file_that_is_none_is_refused(spotrail: Command, name: str) -> None:
    ran = spotrail("estimate", name)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert name in ran.stderr


def test_no_secret_is_printed(spotrail: Command, state_text: Text) -> None:
    content = exported(state_of(**{**VOLUME, "size": {SIGNATURE: SECRET, "plaintext": "4096"}}))
    for form in ("table", "json"):
        ran = spotrail("estimate", "-", "--format", form, *AS_OF, stdin=content)
        assert "plaintext" not in ran.stdout + ran.stderr
        ran = spotrail("estimate", "-", "--format", form, *AS_OF, stdin=state_text("prod"))
        assert "v1:AAAA" not in ran.stdout + ran.stderr


SIGNATURE, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"


def test_help_teaches(spotrail: Command) -> None:
    text = spotrail("estimate", "--help").stdout
    for word in (
        "pulumi preview --json | spotrail estimate -",
        "pulumi stack export",
        "--usage",
        "--strict",
        "no network",
    ):
        assert word in " ".join(text.split()).replace("No cloud, no credentials, no network", "no network")


@pytest.mark.parametrize("form", ["table", "markdown", "html", "github", "sarif"])
def test_a_stack_that_nobody_names_is_the_stack(spotrail: Command, form: str) -> None:
    text = spotrail("check", "-", "--format", form, *AS_OF, stdin=exported()).stdout
    assert any(words in text for words in ("PASS  the stack  0.00 USD", "the stack: 0.00 USD /month"))
