"""The CPU machines of a stack: the Ray head and the hydrator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from policies.hardware.errors import hint
from policies.hardware.machines import BootDiskStatus, boot_disk_verdict, machine, series_of
from policies.hardware.slices import chips_of_machine

STAGING_TYPE: Final = "hyperdisk-balanced"
"""Type of the staging disk: a Hyperdisk ML volume for many readers cannot be written."""


SIZES: Final = tuple(f"{family}-{2**power}" for family in ("standard", "highmem", "highcpu") for power in range(1, 7))
"""Sizes that are proposed instead of one that does not exist."""


@final
@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What is to be said about a machine or its boot disk."""

    about: str
    """`machine` or `boot_disk_type`: the setting that it concerns."""
    message: str
    refused: bool
    """False for a doubt: the table does not say."""


def judge_machine(name: str, boot_disk_type: str) -> Iterator[Judgement]:
    """What is wrong or doubtful about a CPU machine that boots from `boot_disk_type`."""
    if chips_of_machine(name) is not None:
        yield Judgement(
            about="machine", message="It is a TPU host; this one runs no chips: e2-standard-4.", refused=True
        )
        return
    verdict = boot_disk_verdict(name, boot_disk_type)
    if machine(name) is None:
        yield _unknown_machine(name)
    if verdict.status is not BootDiskStatus.OK:
        refused = verdict.status is BootDiskStatus.REFUSED
        yield Judgement(about="boot_disk_type", message=f"{verdict.reason}.", refused=refused)


def judge_hydrator(name: str, boot_disk_type: str) -> Iterator[Judgement]:
    """As `judge_machine`; and the machine has to take the staging disk, a hyperdisk-balanced."""
    yield from judge_machine(name, boot_disk_type)
    verdict = boot_disk_verdict(name, STAGING_TYPE)
    if verdict.status is BootDiskStatus.REFUSED:
        message = f"It cannot take the staging disk, which is {STAGING_TYPE}: {verdict.reason}. n4 and c3 can."
        yield Judgement(about="machine", message=message, refused=True)


def _unknown_machine(name: str) -> Judgement:
    series = series_of(name)
    priced = [other for size in SIZES if machine(other := f"{series}-{size}") is not None]
    if priced:
        message = (
            f"spotrail has no such machine type of the series {series}, and could not price it.{hint(name, priced)}"
        )
        return Judgement(about="machine", message=message, refused=True)
    message = f'The series "{series}" is not in policies/hardware/machine_types.csv: it cannot be priced.'
    return Judgement(about="machine", message=message, refused=False)
