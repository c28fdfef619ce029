"""Who reads a volume, and which time series are of whom.

Series of a volume carry no disk: they are joined by (instance id, device name), which only the inventory of instances
ties to a disk. What the inventory does not tie stays apart: it is never taken for nothing.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, final

from policies.audit.groups import base_of, creator_of
from policies.audit.links import last, location_of, project_of, relative
from policies.audit.reading import link_of, objects, said
from policies.audit.record import Item, Metric, Part, Record, Series
from policies.audit.states import NODE_STATES, OFF, PREEMPTED, RUNNING, STOPPED, STOPPED_NODES
from policies.audit.times import stopped_at
from policies.hardware.slices import shapes

MANY: Final = "_MANY"
"""How the access modes of disks end that several machines can have."""
_ON_THE_WAY: Final = (RUNNING | STOPPED) - OFF


class Standing(enum.Enum):
    """Whether a host can read."""

    RUNS = "runs"
    """Or is on its way there or back."""
    OFF = "off"
    """Stopped, suspended, preempted."""
    UNSURE = "unsure"
    """Not in the inventory, or in a state that nobody knows."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Host:
    """A machine, or a TPU node of several machines, that a volume is attached to."""

    name: str
    standing: Standing
    status: str = ""
    """As its API says; empty where it was not found."""
    tpu: bool = False
    """Whether it belongs to the Cloud TPU API: its machines live in a project of Google's."""
    machines: int = 1
    item: Item = field(default_factory=dict)
    """The instance or the node; empty where it is not in the record."""
    device: str = ""
    """The name under which an instance has the volume."""

    @property
    def stopped(self) -> datetime.datetime | None:
        """When an instance was stopped or suspended last; None where it does not say."""
        return stopped_at(self.item)

    @property
    def id(self) -> str:
        """The number of an instance, which its series carry."""
        return said(self.item, "id")


@final
class Joins:
    """The record, by what ties its parts together."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def hosts(self, disk: Item) -> tuple[Host, ...]:
        """What a disk is attached to, by name: its users, and the instances and nodes that name it."""
        path = self.path(disk)
        nodes = self._nodes.get(path, ())
        links = dict.fromkeys((*self._users(disk), *self._attached.get(path, ())))
        machines = [host for link in links if (host := self._machine(link, disk, nodes)) is not None]
        # One machine may be named in two ways: by a bare name and by a link.
        once = {id(host.item) if host.item else host.name: host for host in (*machines, *map(_node, nodes))}
        return tuple(sorted(once.values(), key=lambda host: (host.name, host.id)))

    def path(self, disk: Item) -> str:
        """The link of a disk without host and version, with the project where it is left out."""
        return self._path(said(disk, "selfLink")) or link_of(disk)

    def series(self, metric: Metric, host: Host) -> tuple[Series, ...]:
        """The series of a volume on one of its hosts."""
        return tuple(self._by_pair(metric).get((host.id, host.device), ()))

    def uptime(self, host: Host) -> tuple[Series, ...]:
        """The series of the running time of a host."""
        return tuple(self._uptime.get(host.id, ()))

    def strangers(self, metric: Metric, disk: Item, hosts: Iterable[Host]) -> Mapping[str, tuple[Series, ...]]:
        """By instance id: series of machines that may have had the disk and are gone, or have it no longer.

        A preempted machine takes with it what tied its series to the disk. By convention the device has the name of
        the disk; and what a managed group made had a shared disk under the same device as what the group has now.
        """
        name, hosts = said(disk, "name"), tuple(hosts)
        own = {(host.id, host.device) for host in hosts}
        kin = set(_kin(hosts)) if said(disk, "accessMode").endswith(MANY) else set()
        found: dict[str, tuple[Series, ...]] = {}
        for device in sorted({name, *(device for device, _ in kin)}):
            for series in self._by_device(metric).get(device, ()):
                id = series.resource_labels.get("instance_id", "")
                akin = device == name or (device, base_of(series.metric_labels.get("instance_name", ""))) in kin
                if akin and (id, device) not in own and _near(series.resource_labels.get("zone", ""), disk):
                    found[id] = (*found.get(id, ()), series)
        return found

    def _path(self, link: str) -> str:
        return relative(link, self._record.project) if link else ""

    def _users(self, disk: Item) -> Iterator[str]:
        users = disk.get("users")
        yield from (self._path(user) for user in users if isinstance(user, str)) if isinstance(users, list) else ()

    def _machine(self, link: str, disk: Item, nodes: Iterable[Item]) -> Host | None:
        """The host of that link; None where a node of the TPU API stands for it."""
        item = self._instance(link, disk)
        if item is not None:
            return _instance(item, self._device(item, disk))
        name = last(link)
        foreign = project_of(link) not in ("", self._record.project)
        if any(foreign or name.startswith(last(said(node, "name"))) for node in nodes):
            return None
        if foreign or "/nodes/" in link:
            return Host(name=name, standing=Standing.RUNS, tpu=True)
        return Host(name=name, standing=Standing.UNSURE)

    def _instance(self, link: str, disk: Item) -> Item | None:
        found = self._instances.get(link)
        if found is not None:
            return found
        # A bare name, or a link that calls the project by its number: the place has to be the same.
        if "/" in link and not project_of(link).isdecimal():
            return None
        place = location_of(link)
        named = self._by_name.get(last(link), ())
        near = [each for each in named if (location_of(link_of(each)) == place if place else _near(_zone(each), disk))]
        return near[0] if len(near) == 1 else None

    def _device(self, instance: Item, disk: Item) -> str:
        """The name under which an instance has a disk; the name of the disk where the record does not say."""
        path, name = self.path(disk), said(disk, "name")
        for each in objects(instance, "disks"):
            source = self._path(said(each, "source"))
            if source and (source == path or ("/" not in path and last(source) == name)):
                return said(each, "deviceName") or name
        return name

    @cached_property
    def _instances(self) -> Mapping[str, Item]:
        found = ((self.path(item), item) for item in self._record.items(Part.INSTANCES))
        return {path: item for path, item in found if "/" in path}

    @cached_property
    def _by_name(self) -> Mapping[str, list[Item]]:
        found: dict[str, list[Item]] = {}
        for item in self._record.items(Part.INSTANCES):
            found.setdefault(said(item, "name"), []).append(item)
        return found

    @cached_property
    def _attached(self) -> Mapping[str, list[str]]:
        """Links of instances by the disks that they have: `users` of a disk may be older than that."""
        found: dict[str, list[str]] = {}
        for item in self._record.items(Part.INSTANCES):
            for each in objects(item, "disks"):
                if source := self._path(said(each, "source")):
                    found.setdefault(source, []).append(self.path(item))
        return found

    @cached_property
    def _nodes(self) -> Mapping[str, list[Item]]:
        found: dict[str, list[Item]] = {}
        for node in self._record.items(Part.NODES):
            for each in objects(node, "dataDisks"):
                if source := self._path(said(each, "sourceDisk")):
                    found.setdefault(source, []).append(node)
        return found

    @cached_property
    def _uptime(self) -> Mapping[str, list[Series]]:
        found: dict[str, list[Series]] = {}
        for series in self._record.series(Metric.UPTIME):
            found.setdefault(series.resource_labels.get("instance_id", ""), []).append(series)
        return found

    @cached_property
    def _devices(self) -> frozenset[tuple[str, str]]:
        """(instance id, device name) of everything that is attached now."""
        instances = self._record.items(Part.INSTANCES)
        return frozenset(
            (said(item, "id"), said(each, "deviceName")) for item in instances for each in objects(item, "disks")
        )

    def _by_pair(self, metric: Metric) -> Mapping[tuple[str, str], list[Series]]:
        return self._indexed(metric)[0]

    def _by_device(self, metric: Metric) -> Mapping[str, list[Series]]:
        return self._indexed(metric)[1]

    @cached_property
    def _kept(self) -> dict[Metric, tuple[Mapping[tuple[str, str], list[Series]], Mapping[str, list[Series]]]]:
        return {}

    def _indexed(self, metric: Metric) -> tuple[Mapping[tuple[str, str], list[Series]], Mapping[str, list[Series]]]:
        """Series by (instance id, device name), and those of what is attached no longer by device name."""
        if metric in self._kept:
            return self._kept[metric]
        pairs: dict[tuple[str, str], list[Series]] = {}
        devices: dict[str, list[Series]] = {}
        for series in self._record.series(metric):
            id, device = series.resource_labels.get("instance_id", ""), series.metric_labels.get("device_name", "")
            if id and device:
                pairs.setdefault((id, device), []).append(series)
                if (id, device) not in self._devices:
                    devices.setdefault(device, []).append(series)
        self._kept[metric] = pairs, devices
        return self._kept[metric]


def _kin(hosts: Iterable[Host]) -> Iterator[tuple[str, str]]:
    """Device and base name of the hosts that a managed group made."""
    for host in hosts:
        base = base_of(host.name)
        if base and host.device and creator_of(host.item):
            yield host.device, base


def _instance(item: Item, device: str) -> Host:
    status = said(item, "status")
    standing = Standing.OFF if status in OFF else Standing.RUNS if status in _ON_THE_WAY else Standing.UNSURE
    return Host(name=said(item, "name"), standing=standing, status=status or "no state", item=item, device=device)


def _node(item: Item) -> Host:
    status, shape = said(item, "state"), shapes().get(said(item, "acceleratorType"))
    off = status in STOPPED_NODES or status == PREEMPTED
    standing = Standing.OFF if off else Standing.RUNS if status in NODE_STATES else Standing.UNSURE
    return Host(
        name=last(said(item, "name")),
        standing=standing,
        status=status or "no state",
        tpu=True,
        machines=shape.hosts if shape else 1,
        item=item,
    )


def _zone(item: Item) -> str:
    return last(said(item, "zone")) or location_of(link_of(item))


def _near(zone: str, disk: Item) -> bool:
    """Whether something of that zone can have the disk. Where either does not say its place, it can."""
    place, region = _zone(disk), last(said(disk, "region"))
    if region and zone:
        return zone.startswith(f"{region}-")
    return not zone or not place or zone == place or zone.startswith(f"{place}-")
