"""`spotrail plan` on the real program and the real stacks, and on mistakes in them.

Most of it runs in this process. How it behaves as a process is in test_process.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pytest

ROOT = Path(__file__).parent.parent.parent
AS_OF = ("--as-of", "2026-11-29")
STACKS = ("dev", "staging", "prod")


Command: TypeAlias = Callable[..., Any]


@pytest.fixture
def planned(spotrail: Command) -> Callable[..., dict[str, Any]]:
    """The plan of a stack as JSON."""
    return lambda *arguments, cwd=ROOT: spotrail("plan", *arguments, "--format", "json", *AS_OF, cwd=cwd).document


@pytest.fixture(params=STACKS)
def document(request: pytest.FixtureRequest, planned: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return planned(str(request.param))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own with the files that Pulumi reads of this one."""
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    shutil.copytree(ROOT / "infra" / "stacks", tmp_path / "infra" / "stacks")
    shutil.copy(ROOT / "infra" / "__main__.py", tmp_path / "infra")
    return tmp_path


def edit(project: Path, old: str, new: str, stack: str = "dev") -> None:
    path = project / "infra" / "stacks" / f"Pulumi.{stack}.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_each_stack_is_complete_and_has_no_error(document: dict[str, Any]) -> None:
    assert document["schema"] == "spotrail.estimate/1"
    assert document["complete"] is True
    assert [found["rule"] for found in document["findings"] if found["severity"] == "error"] == []


def test_spot_prices_without_a_date_are_not_fresh(document: dict[str, Any]) -> None:
    assert document["fresh"] is False


def test_the_parts_add_up_to_the_last_digit(document: dict[str, Any]) -> None:
    lines = [line for found in document["resources"] for line in found["components"]]
    assert sum(Decimal(line["monthly"]) for line in lines) == Decimal(document["monthly"])
    # Per hour, a line that is priced by the month is rounded at its 12th place, and there are fewer than 100 of them.
    assert abs(sum(Decimal(line["hourly"]) for line in lines) - Decimal(document["hourly"])) < Decimal("1e-10")


def test_dev_is_priced_as_by_hand(planned: Callable[..., dict[str, Any]]) -> None:
    """v6e-8 spot: 8 x 0.59266 x 730; boot 100 x 0.08. Head: (4 x 0.02181159 + 16 x 0.00292353) x 730 + 50 x 0.10.
    Volume: 200 x 0.08 + 1200 x 0.12. Snapshot: at most 200 x 0.05. Four alert policies of one condition: 4 x 1.50.
    One job that wakes the guard: 0.10."""
    chips = 8 * Decimal("0.59266") * 730
    head = (4 * Decimal("0.02181159") + 16 * Decimal("0.00292353")) * 730 + 5
    assert Decimal(planned("dev")["monthly"]) == chips + 8 + head + (16 + 144) + 10 + 6 + Decimal("0.10")


def test_prod_counts_every_chip_once(planned: Callable[..., dict[str, Any]]) -> None:
    lines = [line for found in planned("prod")["resources"] for line in found["components"]]
    chips = [Decimal(line["quantity"]) for line in lines if line["item"] == "tpu.v6e.chip"]
    assert sorted(chips) == [8, 8, 8, 8, 64, 64]


@pytest.mark.parametrize("width", ["60", "80", "100", "140"])
def test_the_table_fits_its_width(spotrail: Command, width: str) -> None:
    lines = spotrail("plan", "prod", *AS_OF, COLUMNS=width).stdout.splitlines()
    assert len(lines) > 20
    assert max(map(len, lines)) <= int(width)


def test_strict_cannot_decide_on_undated_prices_unless_they_are_allowed(spotrail: Command) -> None:
    assert spotrail("plan", "dev", "--strict", *AS_OF).returncode == 4
    assert spotrail("plan", "dev", "--strict", "--allow-stale", *AS_OF).returncode == 0


def test_a_book_without_a_price_gives_a_lower_bound(
    spotrail: Command, planned: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    shipped = max((ROOT / "policies" / "prices" / "data").glob("*.csv"))
    book = tmp_path / "book.csv"
    lines = shipped.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("disk.hyperdisk-ml.throughput,")]
    assert len(kept) < len(lines)
    book.write_text("".join(kept), encoding="utf-8")
    short = planned("dev", "--prices", str(book))
    assert short["complete"] is False
    assert Decimal(planned("dev")["monthly"]) - Decimal(short["monthly"]) == 144
    volume = next(found for found in short["resources"] if found["type"] == "gcp:compute/disk:Disk")
    assert [part["item"] for part in volume["unpriced"]] == ["disk.hyperdisk-ml.throughput"]
    assert spotrail("plan", "dev", "--prices", str(book), "--strict", "--allow-stale", *AS_OF).returncode == 4


def test_usage_is_taken_from_a_file(planned: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    usage = tmp_path / "usage.yaml"
    usage.write_text("checkpoints:\n  gib: 100\n", encoding="utf-8")
    assert Decimal(planned("dev", "--usage", str(usage))["monthly"]) - Decimal(planned("dev")["monthly"]) == 2


def test_a_second_serving_zone_has_honestly_missing_prices(
    planned: Callable[..., dict[str, Any]], project: Path
) -> None:
    """us-east5-b has v6e; no source has its Hyperdisk prices."""
    edit(project, "    hosts: 4\n", "    hosts: 4\n    zones: [us-central1-b, us-east5-b]\n", "prod")
    document = planned("prod", cwd=project)
    assert document["complete"] is False
    missing = {part["item"] for found in document["resources"] for part in found["unpriced"]}
    assert missing == {
        "disk.hyperdisk-ml.capacity",
        "disk.hyperdisk-ml.throughput",
        "disk.hyperdisk-balanced.capacity",
    }
    assert all("us-east5" in part["reason"] for found in document["resources"] for part in found["unpriced"])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("zone: us-central1-b", "zone: us-central1-a", ("us-central1-a", "Did you mean us-central1-b", "us-east5-b")),
        ("shape: v6e-8", "shape: v6e-9", ("slices.trainer.shape", "v6e-9", "v6e-16")),
        ("shape: v6e-8", "shpae: v6e-8", ("slices.trainer.shpae", "Did you mean", "shape")),
        ("throughput: 1200", "throughput: 399", ("model.throughput", "399", "400")),
        ("trainer:", "Trainer_1:", ("Trainer_1", "lower")),
        ("trainer:", f"{'t' * 64}:", ("ttt", "63")),
        ("trainer:", f"{'t' * 55}:", ("ttt", "at most 63", "what we append")),
        ("throughput: 1200", "throughput: 1200.5", ("model.throughput", "1200.5", "whole")),
        ("mount_model: true", "mount_model: yes", ("mount_model", "yes", "true")),
        ("spotrail:ttl: 3d", "spotrail:ttl: soon", ("ttl", "soon", "7d")),
        ("spotrail:budget", "spotrail:bugdet", ("bugdet", "Did you mean", "budget")),
    ],
)
def test_a_mistake_in_a_stack_file_never_reaches_the_price(
    spotrail: Command, project: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    edit(project, old, new)
    ran = spotrail("plan", "dev", *AS_OF, cwd=project)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Pulumi.dev.yaml: " in ran.stderr
    assert "Traceback" not in ran.stderr
    for word in words:
        assert word in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "produ"), ("produ", "prod")),
        (("plan",), ("ENV",)),
        (("plan", "dev", "--as-of", "yesterday"), ("yesterday", "2026-11-29")),
        (("plan", "dev", "--prices", "none.csv"), ("none.csv",)),
        (("plan", "dev", "--format", "xml"), ("xml", "json")),
        (("plan", "dev", "--prices", "/dev/zero"), ("'/dev/zero' is a device; name a file",)),
        (("plan", "dev", "--usage", "/dev/zero"), ("'/dev/zero' is a device; name a file",)),
        (("plan", "dev", "--usage", "tests"), ("tests", "directory")),
        (("plan", "dev", "--output", "no/such/plan.txt"), ("no/such/plan.txt", "there is no folder no/such", "make")),
        (("plan", "dev", "--output", "tests"), ("tests", "directory")),
        (("plan", "dev", "--output", "tests/"), ("'tests/' names no file",)),
        (("plan", "dev", "--output", ""), ("'' names no file",)),
        (("plan", "dev", "-C", "none"), ("none", "does not exist")),
        (("plan", "\x1b[31mdev"), (r'no stack "\x1b[31mdev"',)),
        (("plan", ""), ('no stack ""', "The stacks are: dev, prod, staging.")),
        (("plam", "dev"), ("plam", "plan")),
    ],
)
def test_bad_usage_says_what_to_do(spotrail: Command, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    ran = spotrail(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Traceback" not in ran.stderr
    for word in words:
        assert word in ran.stderr


def test_a_usage_file_of_many_mebibytes_is_refused(spotrail: Command, tmp_path: Path) -> None:
    usage = tmp_path / "usage.yaml"
    usage.write_text("#" * 3 * 2**20)
    assert "has 3.0 MiB; the most is 1 MiB" in spotrail("plan", "dev", "--usage", str(usage)).stderr


def test_a_folder_without_a_project_is_refused(spotrail: Command, tmp_path: Path) -> None:
    ran = spotrail("plan", "dev", cwd=tmp_path)
    assert ran.returncode == 2
    assert "Pulumi.yaml" in ran.stderr


def test_a_program_that_fails_shows_its_own_traceback(spotrail: Command, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: broken\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    (tmp_path / "__main__.py").write_text("import pulumi\n\n\ndef build():\n    return {}['zone']\n\n\nbuild()\n")
    ran = spotrail("plan", "dev", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "__main__.py" in ran.stderr
    assert "KeyError: 'zone'" in ran.stderr
    assert "runpy" not in ran.stderr
    assert "infra/engine" not in ran.stderr


def test_the_report_goes_to_a_file_whole_or_not_at_all(spotrail: Command, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    ran = spotrail("plan", "dev", "--format", "json", "--output", str(out), *AS_OF)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert json.loads(out.read_text(encoding="utf-8"))["schema"] == "spotrail.estimate/1"
    before = out.read_bytes()
    assert spotrail("plan", "nosuch", "--output", str(out)).returncode == 2
    assert out.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    assert spotrail("plan", "dev", "--format", "json", "--output", "-", *AS_OF).document == json.loads(before)


def test_help_teaches(spotrail: Command) -> None:
    text = spotrail("plan", "--help").stdout
    for word in ("spotrail plan dev", "--usage", "--prices", "--as-of", "--strict", "--show-passed", "no cloud"):
        assert word in text
    assert "Exit codes" in spotrail("--help").stdout
