"""Usage: the file, its refusals, and which entry wins."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from policies.errors import InputError
from policies.usage import ResourceUsage, Usage, UsageError, field_names, load_usage


def written(folder: Path, text: str) -> Path:
    path = folder / "usage.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_numbers_of_a_file_never_pass_through_a_float(tmp_path: Path) -> None:
    usage = load_usage(written(tmp_path, 'checkpoints:\n  gib: 0.1\n  churn_gib_per_day: "2400.000000000000000001"\n'))
    assert usage.of("checkpoints").gib == Decimal("0.1")
    assert usage.of("checkpoints").churn_gib_per_day == Decimal("2400.000000000000000001")
    assert usage.of("datasets").gib == 0


def test_a_name_wins_over_a_glob_a_later_glob_over_an_earlier_and_all_over_the_defaults(tmp_path: Path) -> None:
    text = """
        trainer-a:
          hours_per_day: 4
        defaults:
          hours_per_day: 10
          preemption_overhead: 0.08
        "trainer-*":
          hours_per_day: 5
        "t*":
          hours_per_day: 6
    """
    usage = load_usage(written(tmp_path, text))
    assert [usage.of(name).hours_per_day for name in ("trainer-a", "trainer-b", "head")] == [4, 6, 10]
    assert usage.of("trainer-a").preemption_overhead == Decimal("0.08")


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    assert load_usage(written(tmp_path, "# nothing yet\n")) == Usage()


def test_an_entry_whose_lines_are_all_comments_sets_nothing(tmp_path: Path) -> None:
    usage = load_usage(written(tmp_path, "defaults:\n  # hours_per_day: 10\nhead:\n"))
    assert (usage.defaults, usage.entries) == (ResourceUsage(), {"head": {}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("head:\n  hours_pr_day: 3\n", r"usage\.yaml:2: head\.hours_pr_day is not .* Did you mean hours_per_day\?"),
        ("head:\n  gib: 1\n  hours_per_day: 25\n", r"usage\.yaml:3: head\.hours_per_day is 25; .* from 0 to 24"),
        ("head:\n  gib: -1\n", r"usage\.yaml:2: head\.gib is -1; it must be from 0 to"),
        ("head:\n  gib: .nan\n", r"head\.gib is \.nan; it must be a number"),
        ("head:\n  gib: .inf\n", r"head\.gib is \.inf; it must be a number"),
        ("head:\n  gib: 1e90\n", r"head\.gib is 1E\+90; it must be from 0 to 1,000,000,000,000"),
        ("head:\n  gib: ten\n", r"head\.gib is ten; it must be a number"),
        ("head:\n  gib: [1]\n", r"head\.gib is not a single value; it must be a number"),
        ("head:\n  gib:\n", r"head\.gib has no value; it must be a number"),
        ("head:\n  gib: 1_000\n", r"head\.gib is 1_000; it must be a number"),
        ("head:\n  gib: ٣\n", r"head\.gib is ٣; it must be a number"),
        ("head:\n  gib: 1e-31\n", r"head\.gib is 1E-31; it must have at most 30 decimal places"),
        (f"head:\n  gib: {'9' * 5000}\n", r"head\.gib is 9{37}\.\.\.; it must be from 0 to"),
        (f"head: {'[' * 5000}\n", r"usage\.yaml: not YAML that can be read: .* nested too deeply"),
        (f"#{'x' * 2**20}\n", r"usage\.yaml: has more than 1 MiB; use globs and defaults"),
        ("head:\n  vms: 1.5\n", r"usage\.yaml:2: head\.vms is 1\.5; it must be a whole number"),
        ("defaults:\n  preemption_overhead: 11\n", r"defaults\.preemption_overhead is 11; it must be from 0 to 10"),
        ("head: 5\n", r"usage\.yaml:1: head must be a mapping"),
        ("- head\n", r"usage\.yaml:1: the file must be a mapping"),
        ("[a]: {}\n", r"usage\.yaml:1: a key of the file must be text"),
        ("head: {gib: 1}\nhead: {gib: 2}\n", r"usage\.yaml:2: the file has head twice"),
        ("head:\n  gib: 1\n  gib: 2\n", r"usage\.yaml:3: head has gib twice"),
        ("head:\n gib: 1\n  vms: 2\n", r"usage\.yaml:3: not YAML: "),
    ],
)
def test_a_wrong_file_is_refused_with_file_line_key_value_and_rule(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refusal:
        load_usage(written(tmp_path, text))
    assert isinstance(refusal.value, InputError)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.yaml: not readable"):
        load_usage(tmp_path / "gone.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"binary\.yaml: byte 0 is not UTF-8; save the file as UTF-8"):
        load_usage(binary)


def test_keys_that_no_resource_answers_to_are_named() -> None:
    entries = {"head": {"gib": Decimal(1)}, "chekpoints": {}, "trainer-*": {}, "serve-*": {}}
    assert list(Usage(entries=entries).unmatched(["head", "trainer-a"])) == ["chekpoints", "serve-*"]


def test_usage_made_in_code_is_checked_like_a_file() -> None:
    with pytest.raises(UsageError, match=r"gib is NaN"):
        ResourceUsage(gib=Decimal("NaN"))
    with pytest.raises(UsageError, match=r"head\.hours_per_day is 30"):
        Usage(entries={"head": {"hours_per_day": Decimal(30)}})


def test_the_share_of_the_month_that_bills() -> None:
    # 10 of 24 hours; on spot 8 % of the work is done twice: 10/24 x 1.08 = 0.45.
    usage = ResourceUsage(hours_per_day=Decimal(10), preemption_overhead=Decimal("0.08"))
    assert usage.share(spot=False) == Fraction(10, 24)
    assert usage.share(spot=True) == Fraction(45, 100)
    assert ResourceUsage().share(spot=True) == 1


def test_every_field_says_what_it_is() -> None:
    source = Path(load_usage.__code__.co_filename).read_text(encoding="utf-8").splitlines()
    for name in field_names():
        place = next(index for index, line in enumerate(source) if line.startswith(f"    {name}: Decimal"))
        assert source[place + 1].strip().startswith('"""'), name
