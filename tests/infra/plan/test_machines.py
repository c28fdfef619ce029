"""The CPU machines: which boot from what, and which can take the staging disk."""

from __future__ import annotations

import pytest

from infra.plan.machines import judge_hydrator, judge_machine


@pytest.mark.parametrize(
    ("machine", "boot"),
    [
        ("e2-standard-4", "pd-balanced"),
        ("n2-standard-8", "pd-balanced"),
        ("c4-standard-8", "hyperdisk-balanced"),
        ("n4-standard-8", "hyperdisk-balanced"),
        ("n2-custom-4-8192", "pd-ssd"),
    ],
)
def test_a_machine_that_fits_its_boot_disk(machine: str, boot: str) -> None:
    assert list(judge_machine(machine, boot)) == []


@pytest.mark.parametrize(
    ("machine", "boot", "about", "why"),
    [
        ("c4-standard-8", "pd-balanced", "boot_disk_type", "c4-standard-8 does not boot from pd-balanced"),
        ("n4-standard-2", "pd-ssd", "boot_disk_type", "n4 boots from hyperdisk-balanced"),
        ("n1-standard-1", "hyperdisk-balanced", "boot_disk_type", "n1 boots from pd-standard or pd-balanced or pd-ssd"),
        ("c4-standard-8", "hyperdisk-ml", "boot_disk_type", "hyperdisk-ml is not bootable on any machine"),
        ("ct6e-standard-8t", "hyperdisk-balanced", "machine", "It is a TPU host"),
        ("e2-standard-5", "pd-balanced", "machine", "Did you mean e2-standard-8?"),
        ("e2-standrd-4", "pd-balanced", "machine", "Did you mean e2-standard-4?"),
    ],
)
def test_a_machine_that_does_not(machine: str, boot: str, about: str, why: str) -> None:
    (judged,) = judge_machine(machine, boot)
    assert (judged.about, judged.refused) == (about, True)
    assert why in judged.message


def test_an_unknown_series_is_a_doubt_and_no_pass() -> None:
    judged = list(judge_machine("z9-standard-8", "hyperdisk-balanced"))
    assert [(one.about, one.refused) for one in judged] == [("machine", False), ("boot_disk_type", False)]
    assert 'The series "z9" is not in' in judged[0].message


@pytest.mark.parametrize("machine", ["n4-standard-8", "c3-standard-8", "c4-standard-8"])
def test_a_hydrator_takes_the_staging_disk(machine: str) -> None:
    assert list(judge_hydrator(machine, "hyperdisk-balanced")) == []


@pytest.mark.parametrize("machine", ["e2-standard-8", "n2-standard-8", "n1-standard-8"])
def test_a_hydrator_that_cannot_is_refused(machine: str) -> None:
    (judged,) = judge_hydrator(machine, "pd-balanced")
    assert judged.refused
    assert "It cannot take the staging disk, which is hyperdisk-balanced" in judged.message
