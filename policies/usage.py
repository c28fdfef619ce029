"""What a stack is used for: the half of the price that no program can know.

A usage file is YAML. A top-level key is the logical name of a resource or a glob; `defaults` holds for all::

    defaults:
      hours_per_day: 10
    checkpoints:
      gib: 100
      churn_gib_per_day: 2400
    "trainer-*":
      preemption_overhead: 0.08

A name wins over a glob, a later glob over an earlier one, and every entry over `defaults`. Numbers stay exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, final

import yaml

from policies.errors import InputError
from policies.hardware.errors import hint

DEFAULTS: Final = "defaults"
CEILING: Final = 10**12
"""Beyond it a number is a typing mistake."""
_MOST: Final = MappingProxyType({"hours_per_day": 24, "preemption_overhead": 10})
_WHOLE: Final = frozenset(
    {"objects", "class_a_operations", "class_b_operations", "readers", "attached_readers", "vms", "executions"}
)
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_PLACES: Final = 30
"""Decimal places of a number; more are a typing mistake too."""
_SHOWN: Final = 40
"""Characters of a value that a message shows."""
_BIGGEST: Final = 1 << 20
"""Bytes of a usage file."""


@final
class UsageError(InputError):
    """A usage file or field that cannot be what it says."""


@final
@dataclass(frozen=True, kw_only=True)
class ResourceUsage:
    """How one resource is used. Amounts per month unless the name says else; 0 where nobody said anything.

    Raises UsageError for a value that is no number, negative, or beyond its range.
    """

    hours_per_day: Decimal = Decimal(24)
    """Hours a day that a slice or VM runs. Chips, vCPUs and memory bill for these; its disks bill all day."""
    preemption_overhead: Decimal = Decimal(0)
    """Spot chip time spent on work that was lost and on restarts, as a fraction: 0.08 is 8 % more chip hours."""
    gib: Decimal = Decimal(0)
    """GiB held: live bytes of a bucket, a registry's images, the compressed bytes of a snapshot or of all snapshots
    that a schedule keeps, what a cache holds."""
    ingest_gib: Decimal = Decimal(0)
    """GiB that a cache takes in."""
    cache_read_gib: Decimal = Decimal(0)
    """GiB that a cache serves."""
    churn_gib_per_day: Decimal = Decimal(0)
    """GiB deleted or overwritten a day. Soft delete bills them on for its retention: 7 days unless it is set."""
    noncurrent_gib: Decimal = Decimal(0)
    """GiB of noncurrent object versions that a versioned bucket holds: billed like live ones."""
    retrieval_gib: Decimal = Decimal(0)
    """GiB read from Nearline, Coldline or Archive, which bill every read; at least what the readers read in passes."""
    written_gib: Decimal = Decimal(0)
    """GiB written to a bucket; in a multi-region or dual-region each is billed once more for its replication."""
    objects: Decimal = Decimal(0)
    """Objects in a bucket with Autoclass, which bills for managing each."""
    class_a_operations: Decimal = Decimal(0)
    """Writes and listings of a bucket."""
    class_b_operations: Decimal = Decimal(0)
    """Reads of a bucket."""
    epochs: Decimal = Decimal(0)
    """Passes over `dataset_gib`; with a bucket in another region every pass bills the transfer again."""
    dataset_gib: Decimal = Decimal(0)
    """GiB that one reader reads in one pass."""
    readers: Decimal = Decimal(1)
    """Hosts that each read the whole `dataset_gib` in a pass."""
    egress_gib: Decimal = Decimal(0)
    """GiB sent to the internet."""
    attached_readers: Decimal = Decimal(0)
    """VMs that mount a read-only volume. They share its throughput; from 21 up each raises its least by 20 MiB/s."""
    vms: Decimal = Decimal(0)
    """VMs that go out through a Cloud NAT gateway."""
    nat_gib: Decimal = Decimal(0)
    """GiB through a Cloud NAT gateway, both ways together."""
    executions: Decimal = Decimal(0)
    """Runs of a Cloud Run job, such as the guard; requests to a Cloud Run service or function."""
    execution_seconds: Decimal = Decimal(60)
    """Seconds that one run of a Cloud Run job takes, or one request to a service or function."""
    message_gib: Decimal = Decimal(0)
    """GiB published to a Pub/Sub topic; every subscription bills the delivery of the same bytes again."""
    log_gib: Decimal = Decimal(0)
    """GiB of logs that a VM, slice or job writes."""
    time_series_millions: Decimal = Decimal(0)
    """Millions of time series that the conditions of an alert policy return."""
    hydration_hours: Decimal = Decimal(1)
    """Hours that the hydration of one model version takes: the staging disk and the hydrator VM bill for them."""

    def __post_init__(self) -> None:
        for name in field_names():
            _check(name, getattr(self, name))

    def share(self, *, spot: bool) -> Fraction:
        """Of the hours of a month, the part that a machine bills for; above 1 where spot work is done twice."""
        return _share(self.hours_per_day, self.preemption_overhead if spot else Decimal())


@lru_cache(maxsize=1024)
def _share(hours_per_day: Decimal, redone: Decimal) -> Fraction:
    """The same for most machines of a stack."""
    return Fraction(hours_per_day) / 24 * (1 + Fraction(redone))


@final
@dataclass(frozen=True, kw_only=True)
class Usage:
    """The usage of a whole stack."""

    defaults: ResourceUsage = field(default_factory=ResourceUsage)
    """What holds where no entry says else."""
    entries: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    """For a logical name or glob, the fields that it sets, in the order of the file."""

    def __post_init__(self) -> None:
        for key, entry in self.entries.items():
            for name, value in entry.items():
                try:
                    _check(name, value)
                except UsageError as error:
                    raise UsageError(f"{key}.{error}") from error

    def of(self, name: str) -> ResourceUsage:
        """The usage of the resource with that logical name."""
        if not self.entries:
            return self.defaults
        changes: dict[str, Any] = {}
        for pattern, entry in self.entries.items():
            if pattern != name and fnmatchcase(name, pattern):
                changes |= entry
        changes |= self.entries.get(name, {})
        return replace(self.defaults, **changes) if changes else self.defaults

    def unmatched(self, names: Iterable[str]) -> Iterator[str]:
        """The keys that no resource of the stack answers to: typing mistakes, most likely."""
        if not self.entries:
            return
        known = tuple(names)
        exact = frozenset(known)
        for pattern in self.entries:
            if pattern not in exact and not any(fnmatchcase(name, pattern) for name in known):
                yield pattern


@cache
def field_names() -> tuple[str, ...]:
    """The names of all usage fields."""
    return tuple(each.name for each in fields(ResourceUsage))


def load_usage(path: Path) -> Usage:
    """Read a usage file; the format is in the docstring of this module.

    Raises UsageError, which names the file, the line, the key, the value and the rule.
    """
    try:
        root = yaml.compose(_text(path), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{line}: not YAML: {error.problem}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    except RecursionError:
        raise UsageError(f"{path}: not YAML that can be read: its lists and mappings are nested too deeply") from None
    except (OSError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: not readable as YAML: {error}") from error
    if root is None:
        return Usage()
    sections = {key: _section(path, key, node) for key, node in _pairs(path, root, "the file")}
    defaults = sections.pop(DEFAULTS, {})
    changes: dict[str, Any] = dict(defaults)
    return Usage(defaults=ResourceUsage(**changes), entries=MappingProxyType(sections))


def _text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(_BIGGEST + 1)
    if len(content) > _BIGGEST:
        raise UsageError(f"{path}: has more than {_BIGGEST >> 20} MiB; use globs and defaults for what is alike")
    return content.decode("utf-8-sig")


def _section(path: Path, key: str, node: yaml.Node) -> Mapping[str, Decimal]:
    """The fields that one entry sets; none where all its lines are comments."""
    if _is_empty(node):
        return MappingProxyType({})
    return MappingProxyType({name: _value(path, key, name, value) for name, value in _pairs(path, node, key)})


def _pairs(path: Path, node: yaml.Node, what: str) -> Iterator[tuple[str, yaml.Node]]:
    """The entries of a YAML mapping by the text of their keys, so that no number passes through a float."""
    if not isinstance(node, yaml.MappingNode):
        raise UsageError(f"{_place(path, node)}: {what} must be a mapping of names to values")
    seen: set[str] = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise UsageError(f"{_place(path, key)}: a key of {what} must be text")
        if key.value in seen:
            raise UsageError(f"{_place(path, key)}: {what} has {key.value} twice")
        seen.add(key.value)
        yield key.value, value


def _value(path: Path, key: str, name: str, node: yaml.Node) -> Decimal:
    try:
        _known(name)
        value = _number(name, node)
        _check(name, value)
    except UsageError as error:
        raise UsageError(f"{_place(path, node)}: {key}.{error}") from error
    return value


def _number(name: str, node: yaml.Node) -> Decimal:
    if not isinstance(node, yaml.ScalarNode):
        raise UsageError(f"{name} is not a single value; it must be a number")
    if _is_empty(node):
        raise UsageError(f"{name} has no value; it must be a number")
    if not _NUMBER.fullmatch(node.value):
        raise UsageError(f"{name} is {_shown(node.value)}; it must be a number")
    return Decimal(node.value)


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and not node.value


def _check(name: str, value: Decimal) -> None:
    _known(name)
    most = _MOST.get(name, CEILING)
    if not value.is_finite() or not 0 <= value <= most:
        raise UsageError(f"{name} is {_shown(value)}; it must be from 0 to {most:,}")
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -_PLACES:
        raise UsageError(f"{name} is {_shown(value)}; it must have at most {_PLACES} decimal places")
    if name in _WHOLE and value != value.to_integral_value():
        raise UsageError(f"{name} is {_shown(value)}; it must be a whole number")


def _shown(value: Decimal | str) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _known(name: str) -> None:
    if name not in field_names():
        raise UsageError(f"{name} is not a usage field. Fields: {', '.join(field_names())}.{hint(name, field_names())}")


def _place(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
