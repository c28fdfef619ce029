"""Every row of every table says where it comes from and when that was read."""

import datetime
from pathlib import Path

import pytest

import policies.hardware
from policies.hardware.tables import provenance, rows

TABLES = sorted(path.stem for path in Path(policies.hardware.__path__[0]).glob("*.csv"))


def test_the_tables_are_found() -> None:
    assert TABLES == ["boot_disks", "disks", "machine_types", "quotas", "runtimes", "slices", "sustained_use", "zones"]


@pytest.mark.parametrize("table", TABLES)
def test_rows_have_a_source_a_date_and_no_stray_cell(table: str) -> None:
    assert rows(table)
    for row in rows(table):
        assert row["source"]
        assert datetime.date.fromisoformat(row["date"]) <= datetime.date(2026, 11, 29)
        assert None not in row
        assert None not in row.values()


@pytest.mark.parametrize("table", TABLES)
def test_the_key_of_a_table_is_unique(table: str) -> None:
    width = 2 if table == "machine_types" else 1
    keys = [tuple(list(row.values())[:width]) for row in rows(table)]
    assert len(set(keys)) == len(keys)


def test_a_table_is_named_with_its_month() -> None:
    assert provenance("zones") == "table of 2026-11, policies/hardware/zones.csv"
