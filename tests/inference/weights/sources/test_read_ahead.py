"""What the kernel reads ahead, found as /sys has it, and judged."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from inference.weights.sources.mounts import Mount, parse_mounts
from inference.weights.sources.read_ahead import ReadAhead, judge_disk, judge_fuse, read_ahead

FILE = Path("/sys/class/bdi/0:52/read_ahead_kb")


def fuse(options: str = "ro") -> Mount:
    (mount,) = parse_mounts(f"bucket /mnt/b fuse.gcsfuse {options} 0 0\n")
    return mount


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """A disk 259:0 with a partition 259:1, and a FUSE mount 0:52."""
    disk = tmp_path / "devices" / "nvme0n1"
    (disk / "nvme0n1p1").mkdir(parents=True)
    (disk / "queue").mkdir()
    (disk / "queue" / "read_ahead_kb").write_text("4096\n")
    block = tmp_path / "dev" / "block"
    block.mkdir(parents=True)
    (block / "259:0").symlink_to(disk)
    (block / "259:1").symlink_to(disk / "nvme0n1p1")
    for number, text in {"259:0": "4096\n", "0:52": "128\n", "0:53": "odd\n"}.items():
        (tmp_path / "class" / "bdi" / number).mkdir(parents=True)
        (tmp_path / "class" / "bdi" / number / "read_ahead_kb").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("major", "minor", "kib"), [(259, 0, 4096), (259, 1, 4096), (0, 52, 128), (0, 53, None), (8, 0, None)]
)
def test_where_it_is_found(sys: Path, major: int, minor: int, kib: int | None) -> None:
    found = read_ahead(os.makedev(major, minor), sys)
    assert (found.kib if found else None) == kib


@pytest.mark.parametrize(("kib", "told"), [(0, True), (127, True), (128, False), (4096, False), (None, False)])
def test_a_disk_is_warned_about_only_where_it_matters(kib: int | None, told: bool) -> None:
    warnings = judge_disk(None if kib is None else ReadAhead(kib=kib, file=FILE))
    assert bool(warnings) is told
    if told:
        assert re.search(rf"{kib} KiB ahead.*echo 4096 > {FILE}", warnings[0])


@pytest.mark.parametrize(
    ("kib", "options", "told"),
    [
        (1024, "ro", []),
        (128, "ro", ["/mnt/b: the kernel asks for 128 KiB.*read_ahead_kb=1024"]),
        (None, "ro", []),
        (1024, "ro,max_read=131072", ["/mnt/b: each read is held to 128 KiB.*without max_read=131072"]),
        (1024, "ro,max_read=1048576", []),
        (1024, "ro,max_read=0", []),
        (1024, "ro,max_read=odd", []),
        (128, "ro,max_read=131072", ["read_ahead_kb", "max_read"]),
    ],
)
def test_a_fuse_mount(kib: int | None, options: str, told: list[str]) -> None:
    warnings = judge_fuse(fuse(options), None if kib is None else ReadAhead(kib=kib, file=FILE))
    assert len(warnings) == len(told)
    for warning, pattern in zip(warnings, told, strict=True):
        assert re.search(pattern, warning)
