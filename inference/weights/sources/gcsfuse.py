"""How gcsfuse was told to mount: read from the command line and configuration file of its process, where one is seen.

Of these options the kernel says nothing in /proc/mounts. In a pod the process runs in another container and is not
seen; then nothing is judged but what the kernel knows.
Source: https://github.com/GoogleCloudPlatform/gcsfuse/blob/master/cfg/params.yaml
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final, final

import yaml

_IN_FILE: Final[Mapping[str, tuple[str, ...]]] = {
    "cache-dir": ("cache-dir",),
    "enable-buffered-read": ("read", "enable-buffered-read"),
    "experimental-o-direct": ("file-system", "experimental-o-direct"),
    "file-cache-cache-file-for-range-read": ("file-cache", "cache-file-for-range-read"),
    "file-cache-enable-parallel-downloads": ("file-cache", "enable-parallel-downloads"),
    "file-cache-max-size-mb": ("file-cache", "max-size-mb"),
    "implicit-dirs": ("implicit-dirs",),
    "limit-bytes-per-sec": ("gcs-connection", "limit-bytes-per-sec"),
    "profile": ("profile",),
    "sequential-read-size-mb": ("gcs-connection", "sequential-read-size-mb"),
}
"""Where the configuration file has what a flag says; other flags are of no interest here."""
_SWITCHES: Final = frozenset(
    {
        "enable-buffered-read",
        "experimental-o-direct",
        "file-cache-cache-file-for-range-read",
        "file-cache-enable-parallel-downloads",
        "foreground",
        "implicit-dirs",
    }
)
"""Flags that are on without a value, and do not take the next word for one."""
_PROFILES: Final[Mapping[str, Mapping[str, str]]] = {
    "aiml-serving": {"file-cache-cache-file-for-range-read": "true", "implicit-dirs": "true"},
    "aiml-checkpointing": {"file-cache-cache-file-for-range-read": "true", "implicit-dirs": "true"},
    "aiml-training": {"implicit-dirs": "true"},
}
_LEAST_SEQUENTIAL_MB: Final = 200
_MIB: Final = 1 << 20


@final
@dataclass(frozen=True, kw_only=True)
class Command:
    """A gcsfuse that runs."""

    point: PurePath
    flags: Mapping[str, str]
    """As given, without their dashes; a switch without a value is "true"."""


@final
@dataclass(frozen=True, kw_only=True)
class Options:
    """What counts of a mount: flag over file over profile, and gcsfuse's defaults where nothing is said."""

    said: Mapping[str, str]

    def on(self, name: str, default: bool = False) -> bool:
        """A switch."""
        return {"true": True, "1": True, "t": True}.get(self.said.get(name, str(default)).lower(), False)

    def number(self, name: str, default: float) -> float:
        """A number; the default where what is said is none."""
        try:
            return float(self.said.get(name, default))
        except ValueError:
            return default


def parse_command(arguments: Sequence[str]) -> Command | None:
    """The words of a command line; None where they are no gcsfuse that mounts something."""
    if not arguments or PurePath(arguments[0]).name != "gcsfuse":
        return None
    flags: dict[str, str] = {}
    places: list[str] = []
    words = iter(arguments[1:])
    for word in words:
        if not word.startswith("-"):
            places.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        flags[name] = value if equals else ("true" if _is_switch(name) else next(words, ""))
    return Command(point=PurePath(places[-1]), flags=flags) if places else None


def parse_options(command: Command, file: str | None) -> Options:
    """What a command says, its configuration file and its profile. A file that is no YAML says nothing."""
    try:
        given = yaml.safe_load(file) if file else None
    except yaml.YAMLError:
        given = None
    of_file = {name: _text(found) for name, path in _IN_FILE.items() if (found := _at(given, path)) is not None}
    said = {**of_file, **command.flags}
    return Options(said={**_PROFILES.get(said.get("profile", ""), {}), **said})


def find_options(point: PurePath, proc: Path) -> Options | None:
    """Of the gcsfuse that has mounted `point`; None where no such process is seen."""
    for path in proc.glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().rstrip(b"\0").split(b"\0")
        except OSError:
            continue  # it has ended, or belongs to another user
        command = parse_command([os.fsdecode(word) for word in words])
        if command is not None and command.point == point:
            return parse_options(command, _content(command.flags.get("config-file")))
    return None


def judge(options: Options, model_bytes: int) -> tuple[str, ...]:
    """What makes this mount slow for a model of so many bytes that is read once, each with its remedy."""
    most = options.number("file-cache-max-size-mb", -1)
    cached = bool(options.said.get("cache-dir")) and most != 0
    limit, stretch = options.number("limit-bytes-per-sec", -1), options.number("sequential-read-size-mb", 200)
    told = (
        (
            cached and not options.on("file-cache-cache-file-for-range-read"),
            "its file cache passes over reads that do not begin with the file, so that many readers of one file get "
            "nothing from it: mount with --file-cache-cache-file-for-range-read",
        ),
        (
            cached and not options.on("file-cache-enable-parallel-downloads", True),
            "its file cache fetches each file in one stream: mount with --file-cache-enable-parallel-downloads",
        ),
        (
            cached and 0 < most < model_bytes / _MIB,
            f"the model has {model_bytes / _MIB:.0f} MiB and the file cache holds {most:.0f}: mount with "
            "--file-cache-max-size-mb=-1",
        ),
        (
            not cached and not options.on("enable-buffered-read"),
            "it reads nothing ahead by itself: mount with --enable-buffered-read, or with a --cache-dir in memory",
        ),
        (limit > 0, f"it is held to {limit / _MIB:.0f} MiB/s: mount without --limit-bytes-per-sec"),
        (
            stretch < _LEAST_SEQUENTIAL_MB,
            f"it asks the bucket again after every {stretch:.0f} MiB: mount with "
            f"--sequential-read-size-mb={_LEAST_SEQUENTIAL_MB}",
        ),
        (
            options.on("experimental-o-direct"),
            "every read goes past the page cache and its read-ahead: mount without --experimental-o-direct",
        ),
    )
    return tuple(f"gcsfuse: {warning}" for holds, warning in told if holds)


def _is_switch(name: str) -> bool:
    return name in _SWITCHES or name.startswith(("enable-", "disable-", "debug"))


def _content(path: str | None) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8") if path else None
    except (OSError, UnicodeDecodeError):
        return None


def _at(given: Any, path: Sequence[str]) -> Any:
    for name in path:
        given = given.get(name) if isinstance(given, dict) else None
    return given


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
