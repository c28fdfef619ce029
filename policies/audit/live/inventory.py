"""What exists in a project: each collection page by page, in Google's own JSON, cut to the allowed fields.

Sources: aggregatedList of https://cloud.google.com/compute/docs/reference/rest/v1, and list over `locations/-` of
https://cloud.google.com/tpu/docs/reference/rest/v2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from policies.audit.links import last
from policies.audit.live.access import Clients
from policies.audit.live.failures import CloudError, plain
from policies.audit.live.fields import allowed
from policies.audit.live.paging import pages
from policies.audit.record import Item, Missing, Part

_COMPUTE_PAGE: Final = 500
_TPU_PAGE: Final = 1000
_FINE: Final = ("", "NO_RESULTS_ON_PAGE")
"""Warnings of a scope that say nothing is missing."""


@final
@dataclass(kw_only=True)
class Found:
    """What came of a part."""

    items: list[Item] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)

    def add_gap(self, part: Part, place: str, why: str) -> None:
        """Say that something could not be seen; `place` is the zone, or empty."""
        gap = Missing(part=f"{part.value} {place}".rstrip(), why=plain(why))
        if all(known.part != gap.part for known in self.missing):
            self.missing.append(gap)


@final
@dataclass(frozen=True, kw_only=True)
class Page:
    """One answer of a list."""

    items: Iterable[Item]
    gaps: Iterable[tuple[str, str]]
    """Zone and reason of what the answer leaves out."""


def read_part(part: Part, stream: Iterator[Page]) -> Found:
    """All pages of a part. Raises CloudError where the first fails; what came before another fails is kept."""
    found, came = Found(), 0
    try:
        for page in stream:
            found.items += [allowed(part, item) for item in page.items]
            for place, why in page.gaps:
                found.add_gap(part, place, why)
            came += 1
    except CloudError as error:
        if not came:
            raise
        found.add_gap(part, "", f"{error} (after {came} pages)")
    return found


def readers(clients: Clients, project: str) -> Mapping[Part, Callable[[], Found]]:
    """The questions about Compute Engine and Cloud TPU, by part. Each raises CloudError where nothing came."""
    return {
        part: _reader(part, stream)
        for part, stream in {
            Part.DISKS: lambda: _aggregated(clients, project, "Disks", "disks"),
            Part.INSTANCES: lambda: _aggregated(clients, project, "Instances", "instances"),
            Part.SNAPSHOTS: lambda: _global(clients, project, "Snapshots"),
            Part.IMAGES: lambda: _global(clients, project, "Images"),
            Part.ADDRESSES: lambda: _aggregated(clients, project, "Addresses", "addresses"),
            Part.GROUPS: lambda: _aggregated(clients, project, "InstanceGroupManagers", "instance_group_managers"),
            Part.STORAGE_POOLS: lambda: _aggregated(clients, project, "StoragePools", "storage_pools"),
            Part.ROUTERS: lambda: _aggregated(clients, project, "Routers", "routers"),
            Part.NODES: lambda: _nodes(clients, project),
            Part.QUEUED_RESOURCES: lambda: _queued_resources(clients, project),
        }.items()
    }


def _reader(part: Part, stream: Callable[[], Iterator[Page]]) -> Callable[[], Found]:
    return lambda: read_part(part, stream())


def _aggregated(clients: Clients, project: str, collection: str, name: str) -> Iterator[Page]:
    """All zones and regions at once; a zone that does not answer is named, and does not fail the others."""
    from google.cloud import compute_v1

    request = getattr(compute_v1, f"AggregatedList{collection}Request")(project=project, max_results=_COMPUTE_PAGE)
    method = f"compute.{_camel(collection)}.aggregatedList"
    for page in pages(clients, method, clients.compute_lists(collection).aggregated_list, request):
        raw = type(page).pb(page)
        scopes = list(raw.items.items())
        gaps = [(last(scope), "the zone or region did not answer") for scope in raw.unreachables]
        gaps += [(last(scope), _told(scoped.warning)) for scope, scoped in scopes if _doubtful(scoped.warning)]
        if _doubtful(raw.warning) and not gaps:  # otherwise it only says so again
            gaps = [("", _told(raw.warning))]
        yield Page(items=as_json(item for _, scoped in scopes for item in getattr(scoped, name)), gaps=gaps)


def _global(clients: Clients, project: str, collection: str) -> Iterator[Page]:
    from google.cloud import compute_v1

    request = getattr(compute_v1, f"List{collection}Request")(project=project, max_results=_COMPUTE_PAGE)
    method = f"compute.{_camel(collection)}.list"
    for page in pages(clients, method, clients.compute_lists(collection).list, request):
        raw = type(page).pb(page)
        yield Page(items=as_json(raw.items), gaps=[("", _told(raw.warning))] if _doubtful(raw.warning) else [])


def _nodes(clients: Clients, project: str) -> Iterator[Page]:
    from google.cloud import tpu_v2

    request = tpu_v2.ListNodesRequest(parent=f"projects/{project}/locations/-", page_size=_TPU_PAGE)
    for page in pages(clients, "tpu.nodes.list", clients.tpu.list_nodes, request):
        raw = type(page).pb(page)
        yield Page(items=as_json(raw.nodes), gaps=_unreachable(raw))


def _queued_resources(clients: Clients, project: str) -> Iterator[Page]:
    from google.cloud import tpu_v2

    request = tpu_v2.ListQueuedResourcesRequest(parent=f"projects/{project}/locations/-", page_size=_TPU_PAGE)
    for page in pages(clients, "tpu.queuedResources.list", clients.tpu.list_queued_resources, request):
        raw = type(page).pb(page)
        yield Page(items=as_json(raw.queued_resources), gaps=_unreachable(raw))


def as_json(resources: Iterable[Any]) -> Iterator[Item]:
    """Messages as Google's own JSON: names in camel case, int64 as text, a value of tomorrow's enum as its number."""
    from google.protobuf.json_format import MessageToDict

    return map(MessageToDict, resources)


def _unreachable(raw: Any) -> list[tuple[str, str]]:
    return [(last(place), "the zone did not answer") for place in raw.unreachable]


def _doubtful(warning: Any) -> bool:
    return warning.code not in _FINE


def _told(warning: Any) -> str:
    return f"{warning.code}: {warning.message}"


def _camel(collection: str) -> str:
    return collection[:1].lower() + collection[1:]
