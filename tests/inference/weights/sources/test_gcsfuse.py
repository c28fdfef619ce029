"""What a gcsfuse was told, from its command line and file, and what of it is slow."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

import pytest

from inference.weights.sources.gcsfuse import Options, find_options, judge, parse_command, parse_options

GIB = 1 << 30
FAST = {"enable-buffered-read": "true"}
CACHED = {"cache-dir": "/dev/shm/cache", "file-cache-cache-file-for-range-read": "true"}


@pytest.mark.parametrize(
    ("line", "point", "flags"),
    [
        ("gcsfuse bucket /mnt/b", "/mnt/b", {}),
        ("/usr/bin/gcsfuse --implicit-dirs bucket /mnt/b", "/mnt/b", {"implicit-dirs": "true"}),
        ("gcsfuse --implicit-dirs=false bucket /mnt/b", "/mnt/b", {"implicit-dirs": "false"}),
        ("gcsfuse --implicit_dirs bucket /mnt/b", "/mnt/b", {"implicit-dirs": "true"}),
        ("gcsfuse --cache-dir /shm --foreground b /mnt/b", "/mnt/b", {"cache-dir": "/shm", "foreground": "true"}),
        ("gcsfuse -o ro,allow_other --uid 1 /mnt/all", "/mnt/all", {"o": "ro,allow_other", "uid": "1"}),
        ("gcsfuse --log-file=a=b bucket /mnt/b", "/mnt/b", {"log-file": "a=b"}),
        ("gcsfuse --enable-something-new b /mnt/b", "/mnt/b", {"enable-something-new": "true"}),
    ],
)
def test_command_lines(line: str, point: str, flags: dict[str, str]) -> None:
    command = parse_command(line.split())
    assert command is not None
    assert (command.point, command.flags) == (PurePath(point), flags)


@pytest.mark.parametrize("line", ["", "python server.py /mnt/b", "gcsfuse --version", "grep gcsfuse /mnt/b"])
def test_what_mounts_nothing(line: str) -> None:
    assert parse_command(line.split()) is None


def test_flag_over_file_over_profile() -> None:
    command = parse_command(["gcsfuse", "--profile", "aiml-serving", "--cache-dir=/flag", "b", "/mnt/b"])
    assert command is not None
    file = "cache-dir: /file\nfile-cache: {max-size-mb: 100, enable-parallel-downloads: false}\nread: 7\n"
    options = parse_options(command, file)
    assert options.said["cache-dir"] == "/flag"
    assert options.number("file-cache-max-size-mb", -1) == 100
    assert not options.on("file-cache-enable-parallel-downloads", True)
    assert options.on("file-cache-cache-file-for-range-read")
    off = parse_options(command, file + "implicit-dirs: false")
    assert not off.on("implicit-dirs")


@pytest.mark.parametrize("file", [None, "", "just text", "- a\n- b\n", "{", "file-cache: [1]\n"])
def test_a_file_that_says_nothing(file: str | None) -> None:
    command = parse_command(["gcsfuse", "b", "/mnt/b"])
    assert command is not None
    assert parse_options(command, file).said == {}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (FAST, []),
        (CACHED, []),
        ({}, ["--enable-buffered-read"]),
        ({"enable-buffered-read": "false"}, ["--enable-buffered-read"]),
        ({"cache-dir": "/shm"}, ["--file-cache-cache-file-for-range-read"]),
        ({**CACHED, "file-cache-max-size-mb": "0"}, ["--enable-buffered-read"]),  # 0 turns the cache off
        ({**CACHED, "file-cache-max-size-mb": "2047"}, ["2048 MiB.*holds 2047.*--file-cache-max-size-mb=-1"]),
        ({**CACHED, "file-cache-max-size-mb": "2048"}, []),
        ({**CACHED, "file-cache-enable-parallel-downloads": "false"}, ["--file-cache-enable-parallel-downloads"]),
        ({**FAST, "limit-bytes-per-sec": "104857600"}, ["100 MiB/s.*--limit-bytes-per-sec"]),
        ({**FAST, "limit-bytes-per-sec": "-1"}, []),
        ({**FAST, "limit-bytes-per-sec": "fast"}, []),
        ({**FAST, "sequential-read-size-mb": "10"}, ["every 10 MiB.*--sequential-read-size-mb=200"]),
        ({**FAST, "experimental-o-direct": "true"}, ["without --experimental-o-direct"]),
        ({"limit-bytes-per-sec": "1e6", "cache-dir": "/shm"}, ["range-read", "limit-bytes"]),
    ],
)
def test_what_is_slow(said: dict[str, str], told: list[str]) -> None:
    warnings = judge(Options(said=said), 2 * GIB)
    assert len(warnings) == len(told), warnings
    for warning, pattern in zip(warnings, told, strict=True):
        assert re.search(pattern, warning)


def test_processes_are_found_by_their_mount_point(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("gcs-connection: {limit-bytes-per-sec: 1000000}\n")
    for number, words in {
        "17": ["python", "gcsfuse", "/mnt/b"],
        "18": ["gcsfuse", "a", "/mnt/a"],
        "19": ["/opt/gcsfuse", f"--config-file={config}", "b", "/mnt/b"],
        "20": ["gcsfuse", "--config-file=/is/not/there", "c", "/mnt/c"],
    }.items():
        (tmp_path / number).mkdir()
        (tmp_path / number / "cmdline").write_bytes("\0".join(words).encode() + b"\0")
    (tmp_path / "21").mkdir()  # has ended
    found = find_options(PurePath("/mnt/b"), tmp_path)
    assert found is not None
    assert found.number("limit-bytes-per-sec", -1) == 1e6
    assert find_options(PurePath("/mnt/c"), tmp_path) is not None
    assert find_options(PurePath("/mnt/d"), tmp_path) is None
