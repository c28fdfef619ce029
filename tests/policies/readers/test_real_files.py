"""Files that Pulumi's own CLI wrote (3.274.1; `python -m tests.engine.fixtures`), read, priced and judged.

The stack is a spot slice v6e-8, a model volume, a shelf of 100 GiB, a bucket, a network and the photo of the volume.
The change gives the volume 400 MiB/s more, makes the shelf anew as pd-ssd, adds an address and removes the photo.
"""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import pytest

from policies.changes import Op, Reading
from policies.estimate.engine import estimate
from policies.exit_codes import ExitCode
from policies.prices.book import shipped_book
from policies.readers.errors import ReadError
from policies.readers.source import open_source
from policies.resources import SECRET, ResourceSet
from policies.usage import Usage
from scripts.cli import run

FOLDER = Path(__file__).parent / "fixtures"
AS_OF = datetime.date(2026, 11, 29)
CREATE, STATE, LATER = "preview_create.json", "state.json", "state_later.json"
INTERRUPTED, RESUMED = "state_interrupted.json", "state_resumed.json"
CHAIN = "preview_chain_steps.json"
CHANGE, SAMES, STEPS, STILL = (
    "preview_change.json",
    "preview_change_sames.json",
    "preview_change_steps.json",
    "preview_still.json",
)
THROUGHPUT = 400 * Decimal("0.12")
"""What 400 MiB/s of Hyperdisk ML cost a month."""
SHELF = 100 * (Decimal("0.17") - Decimal("0.10"))
"""What 100 GiB of pd-ssd cost a month more than those of pd-balanced."""


def read(name: str) -> Reading:
    return open_source(str(FOLDER / name))


def monthly(resources: ResourceSet | None) -> Decimal:
    assert resources is not None
    return estimate(resources, Usage(), shipped_book(), AS_OF).amount.monthly


def named(resources: ResourceSet | None) -> set[str]:
    return {one.name for one in resources or () if one.type.startswith("gcp:")}


def test_a_plan_and_the_state_that_came_of_it_cost_the_same_to_the_last_digit() -> None:
    assert monthly(read(CREATE).after) == monthly(read(STATE).after) > 3000
    assert monthly(read(SAMES).after) == monthly(read(LATER).after)


def test_what_stands_before_a_change_is_the_state() -> None:
    before = read(SAMES).before
    assert named(before) == named(read(STATE).after)
    assert monthly(before) == monthly(read(STATE).after)


@pytest.mark.parametrize("name", [CHANGE, SAMES, STEPS])
def test_a_change_costs_the_same_however_it_is_shown(name: str) -> None:
    reading = read(name)
    photo = next(one for one in reading.before or () if one.name == "photo")
    removed = monthly(ResourceSet((photo,)))
    bought = monthly(ResourceSet(tuple(one for one in reading.after if one.name == "buoy")))
    assert monthly(reading.after) - monthly(reading.before) == THROUGHPUT + SHELF + bought - removed
    ops = {(change.after or change.before).name: change.op for change in reading.changes if change.op is not Op.SAME}  # type: ignore[union-attr]
    assert ops == {"coral": Op.UPDATE, "corner-shelf": Op.REPLACE, "buoy": Op.CREATE, "photo": Op.DELETE}


def test_what_a_preview_does_not_show_is_counted() -> None:
    assert read(SAMES).hidden == read(CREATE).hidden == 0
    assert read(CHANGE).hidden == read(STEPS).hidden == len(read(SAMES).after) - len(read(CHANGE).after)
    assert read(STILL).hidden == len(read(LATER).after) - 1 - len(read(LATER).after.of_type("pulumi:providers:gcp"))


@pytest.mark.parametrize("name", [CREATE, STATE, SAMES, LATER, INTERRUPTED, RESUMED])
def test_a_secret_stays_one(name: str) -> None:
    bell = next(one for one in read(name).after if one.name == "bell")
    assert bell.value("sensitiveLabels", "authToken") is SECRET
    assert "xoxb" not in (FOLDER / name).read_text(encoding="utf-8")


def test_a_preview_that_a_policy_stopped_is_refused() -> None:
    with pytest.raises(ReadError, match="the preview failed with 1 error"):
        read("preview_failed.json")


def test_the_options_that_a_state_keeps_are_read() -> None:
    after = read(STATE).after
    coral = next(one for one in after if one.name == "coral")
    nest = next(one for one in after if one.name == "nest")
    shelf = next(one for one in after if one.name == "corner-shelf")
    pod = next(one for one in after if one.name == "pod")
    assert coral.options.custom_timeouts == {"create": "3600s"}
    assert nest.options.protect
    assert shelf.options.parent == next(one.urn for one in after if one.type == "reef:sea:Corner")
    assert pod.options.property_dependencies["dataDisks"] == (coral.urn,)


def test_what_an_interrupted_up_may_have_made_is_possible_and_outside_the_total(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [one.name for one in read(INTERRUPTED).possible] == ["coral"]
    assert named(read(STATE).after) - named(read(INTERRUPTED).after) == {"coral", "pod", "photo"}
    assert run(["estimate", str(FOLDER / INTERRUPTED), "--as-of", str(AS_OF)]) == 0
    # 200 GiB at 0.08 and 800 MiB/s at 0.12; what stands is the shelf, 100 GiB at 0.10.
    assert "possible 112.00 a month: interrupted while creating coral" in " ".join(capsys.readouterr().out.split())
    assert monthly(read(INTERRUPTED).after) == 10


def test_what_stands_since_is_not_possible_a_second_time() -> None:
    resumed = read(RESUMED)
    assert resumed.possible == ()
    assert monthly(resumed.after) == monthly(read(STATE).after)
    assert [note for note in resumed.notes if "coral" in note and "--clear-pending-creates" in note]


def test_what_goes_with_something_that_is_replaced_is_deleted() -> None:
    reading = read(CHAIN)
    ops = {(change.after or change.before).name: change.op for change in reading.changes if change.op is not Op.SAME}  # type: ignore[union-attr]
    assert ops == {"shelf": Op.REPLACE, "copy": Op.DELETE}
    # Two disks of pd-balanced, 100 GiB at 0.10 each; one of pd-ssd, 100 GiB at 0.17.
    assert monthly(reading.before) == 20
    assert monthly(reading.after) == 17


@pytest.mark.parametrize("name", [CREATE, STATE, CHANGE, SAMES, STEPS, STILL, LATER, INTERRUPTED, RESUMED])
def test_estimate_and_check_take_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", str(FOLDER / name), "--format", "json", "--as-of", str(AS_OF)]) == 0
    document = json.loads(capsys.readouterr().out)
    # Where something is hidden there is no total, but the change is priced all the same.
    total = document["monthly"]
    assert total is None if read(name).hidden else Decimal(total) == monthly(read(name).after)
    judged = run(["check", str(FOLDER / name), "--format", "json", "--as-of", str(AS_OF)])
    assert judged in (ExitCode.FINE, ExitCode.VIOLATED, ExitCode.UNDECIDED)
    assert json.loads(capsys.readouterr().out)["schema"] == "spotrail.estimate/1"


def test_no_file_names_a_place_on_the_machine_that_wrote_it() -> None:
    for file in FOLDER.glob("*.json"):
        text = file.read_text(encoding="utf-8")
        assert "$PATH" not in text
        assert not any(f'"{key}"' in text for key in ("sourcePosition", "stackTrace", "path"))
        assert not any(word in text for word in ("/tmp", "/root", "/home", "127.0.0.1"))
