"""Looking at the live world and changing it, with Google's own clients. One call a step, waited for to its end."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, final

from policies.audit.links import last, relative
from policies.audit.live.access import Clients
from policies.audit.live.failures import CloudError, told
from policies.audit.record import Item
from policies.audit.remedies.applying import HandsError
from policies.audit.remedies.model import Action, Step
from policies.audit.remedies.places import Collection, Place, place_of
from policies.errors import InputError
from policies.hardware.zones import region_of

WAIT_S: Final = 1800.0
"""After which a change that the cloud has not finished is given up; a snapshot of a large volume takes its time."""
POLL_S: Final = 5.0
"""Between two looks at something that takes its time: a fifth of it at first, four times as much in the end."""
LABELS: Final = {"managed-by": "spotrail", "role": "audit", "protect": "true"}
"""Of the snapshots that are taken before a deletion. Each is the last copy of what was on a disk: no audit proposes to
delete it, and nothing deletes it that is not told its name."""


@final
class GoogleHands:
    """The hands that a plan is applied with. Raises HandsError for every failure of an API."""

    def __init__(self, clients: Clients, *, wait_s: float = WAIT_S, poll_s: float = POLL_S) -> None:
        self._clients = clients
        self._wait_s = wait_s
        self._poll_s = poll_s

    def look(self, resource: str) -> Item | None:
        """The resource as it is now; None where there is none."""
        place = _placed(resource)
        found: Item | None = self._guarded(f"get {resource}", lambda: self._look(place))
        return found

    def act(self, step: Step) -> None:
        """Make the call of a step and wait until it is done.

        The request has an id of its own: what the client repeats is done once. The next run has another, since Google
        answers a known id with the operation that it knows, also where that has failed.
        """
        place = _placed(step.resource)
        effect, request_id = _EFFECTS[step.action], str(uuid.uuid4())
        self._guarded(f"{step.action.value} {step.resource}", lambda: effect(self, place, step.arguments, request_id))

    def _guarded(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            with told(what):
                return call()
        except CloudError as error:
            raise HandsError(str(error)) from error
        except TimeoutError as error:
            raise HandsError(f"{what}: not done after {self._wait_s:.0f} s; look at it, and run again") from error

    def _look(self, place: Place) -> Item | None:
        from google.api_core.exceptions import NotFound

        try:
            if place.collection is Collection.NODES:
                return _json(self._clients.tpu.get_node(name=place.link, **self._how("tpu.nodes.get")))
            if place.collection is Collection.QUEUED_RESOURCES:
                how = self._how("tpu.queuedResources.get")
                return _json(self._clients.tpu.get_queued_resource(name=place.link, **how))
            if place.collection is Collection.BUCKETS:
                return self._storage("GET", f"/b/{place.name}")
            if place.collection is Collection.CACHES:
                return self._storage("GET", f"/b/{place.location}/anywhereCaches/{place.name}")
            client = self._clients.compute(place.collection.client)
            return _json(client.get(**place.arguments(), **self._how(f"compute.{place.collection.client}.get")))
        except NotFound:
            return None

    def _how(self, method: str) -> dict[str, Any]:
        self._clients.asked(method)
        return self._clients.how(method)

    def _storage(self, verb: str, path: str, *, query: Mapping[str, str] = {}, body: Any = None) -> Item:
        """A call of the JSON API that the client has no method for, or whose answer it would take apart."""
        connection, how = self._clients.storage._connection, self._how(f"storage {verb}")
        found: Item = connection.api_request(verb, path, query_params=dict(query), data=body, **how)
        return found

    def _wait(self, operation: Any) -> None:
        from google.api_core.exceptions import GoogleAPIError, RetryError
        from google.api_core.future.polling import DEFAULT_POLLING

        try:
            polling = DEFAULT_POLLING.with_delay(initial=self._poll_s / 5, maximum=4 * self._poll_s)
            operation.result(timeout=self._wait_s, polling=polling)
        except (RetryError, TimeoutError) as error:
            raise TimeoutError from error
        except GoogleAPIError:
            raise
        except Exception as error:
            # The clients raise bare errors for an operation that failed.
            raise CloudError(f"the operation failed: {error}") from error

    def set_throughput(self, place: Place, arguments: Mapping[str, Any], request_id: str) -> None:
        from google.cloud import compute_v1

        client = self._clients.compute(place.collection.client)
        wanted = compute_v1.Disk(name=place.name, provisioned_throughput=int(arguments["mibps"]))
        mask = "provisionedThroughput"
        request = self._request("Update", place)(
            **place.arguments(), disk_resource=wanted, paths=mask, update_mask=mask, request_id=request_id
        )
        self._wait(client.update(request=request, **self._how("compute.disks.update")))

    def create_snapshot(self, place: Place, arguments: Mapping[str, Any], request_id: str) -> None:
        from google.api_core.exceptions import Conflict
        from google.cloud import compute_v1

        name = str(arguments["snapshot"])
        region = region_of(place.location) if place.collection is Collection.ZONE_DISKS else place.location
        wanted = compute_v1.Snapshot(
            name=name, source_disk=place.link, storage_locations=[region], labels=LABELS,
            description=f"taken by spotrail before {place.name} was deleted",
        )  # fmt: skip
        request = compute_v1.InsertSnapshotRequest(
            project=place.project, snapshot_resource=wanted, request_id=request_id
        )
        try:
            self._wait(
                self._clients.compute("Snapshots").insert(request=request, **self._how("compute.snapshots.insert"))
            )
        except Conflict:
            # Another run has begun it, and was killed before it was ready.
            self._wait_while(f"projects/{place.project}/global/snapshots/{name}", "CREATING", "UPLOADING")

    def _wait_while(self, resource: str, *states: str) -> None:
        deadline = time.monotonic() + self._wait_s
        while (found := self._look(place_of(resource))) and found.get("status") in states:
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(self._poll_s)

    @staticmethod
    def _request(verb: str, place: Place) -> Any:
        """The class of a request of Compute Engine: `DeleteRegionDiskRequest`."""
        from google.cloud import compute_v1

        return getattr(compute_v1, f"{verb}{place.collection.noun}Request")

    def delete(self, place: Place, _: Mapping[str, Any], request_id: str) -> None:
        found = self._look(place)
        if found is None or found.get("status") == "DELETING":
            # Another run has begun it, and was killed before it was gone.
            self._wait_while(place.link, "DELETING")
            return
        request = self._request("Delete", place)(**place.arguments(), request_id=request_id)
        how = self._how(f"compute.{place.collection.client}.delete")
        self._wait(self._clients.compute(place.collection.client).delete(request=request, **how))

    def detach_disk(self, place: Place, arguments: Mapping[str, Any], request_id: str) -> None:
        from google.cloud import compute_v1

        host = place_of(str(arguments["instance"]))
        device = self._device(host, place)
        request = compute_v1.DetachDiskInstanceRequest(**host.arguments(), device_name=device, request_id=request_id)
        how = self._how("compute.instances.detachDisk")
        self._wait(self._clients.compute("Instances").detach_disk(request=request, **how))

    def _device(self, host: Place, disk: Place) -> str:
        found = self._look(host)
        attached = found.get("disks") if found else None
        for each in attached if isinstance(attached, list) else []:
            if isinstance(each, Mapping) and relative(str(each.get("source"))) == disk.link:
                return str(each.get("deviceName"))
        raise CloudError(f"{last(host.link)} has no disk {last(disk.link)}")

    def resize_group(self, place: Place, arguments: Mapping[str, Any], request_id: str) -> None:
        request = self._request("Resize", place)(
            **place.arguments(), size=int(arguments["size"]), request_id=request_id
        )
        how = self._how("compute.instanceGroupManagers.resize")
        self._wait(self._clients.compute(place.collection.client).resize(request=request, **how))

    def stop_instance(self, place: Place, _: Mapping[str, Any], request_id: str) -> None:
        from google.cloud import compute_v1

        request = compute_v1.StopInstanceRequest(**place.arguments(), request_id=request_id)
        how = self._how("compute.instances.stop")
        self._wait(self._clients.compute("Instances").stop(request=request, **how))

    def delete_node(self, place: Place, _: Mapping[str, Any], __: str) -> None:
        self._wait(self._clients.tpu.delete_node(name=place.link, **self._how("tpu.nodes.delete")))

    def delete_queued_resource(self, place: Place, _: Mapping[str, Any], request_id: str) -> None:
        from google.cloud import tpu_v2

        request = tpu_v2.DeleteQueuedResourceRequest(name=place.link, request_id=request_id)
        how = self._how("tpu.queuedResources.delete")
        self._wait(self._clients.tpu.delete_queued_resource(request=request, **how))

    def patch_bucket(self, place: Place, arguments: Mapping[str, Any], _: str) -> None:
        query = {"ifMetagenerationMatch": str(arguments["metageneration"])}
        self._storage("PATCH", f"/b/{place.name}", query=query, body=arguments["patch"])

    def disable_cache(self, place: Place, _: Mapping[str, Any], __: str) -> None:
        self._storage("POST", f"/b/{place.location}/anywhereCaches/{place.name}/disable")


_Effect = Callable[[GoogleHands, Place, Mapping[str, Any], str], None]

_EFFECTS: Final[Mapping[Action, _Effect]] = {
    Action.SET_THROUGHPUT: GoogleHands.set_throughput,
    Action.CREATE_SNAPSHOT: GoogleHands.create_snapshot,
    Action.DELETE_DISK: GoogleHands.delete,
    Action.DETACH_DISK: GoogleHands.detach_disk,
    Action.RELEASE_ADDRESS: GoogleHands.delete,
    Action.DELETE_SNAPSHOT: GoogleHands.delete,
    Action.DELETE_IMAGE: GoogleHands.delete,
    Action.DELETE_NODE: GoogleHands.delete_node,
    Action.DELETE_QUEUED_RESOURCE: GoogleHands.delete_queued_resource,
    Action.RESIZE_GROUP: GoogleHands.resize_group,
    Action.STOP_INSTANCE: GoogleHands.stop_instance,
    Action.PATCH_BUCKET: GoogleHands.patch_bucket,
    Action.DISABLE_CACHE: GoogleHands.disable_cache,
}


def _placed(link: str) -> Place:
    try:
        return place_of(link)
    except InputError as error:
        raise HandsError(str(error)) from error


def _json(message: Any) -> Item:
    """A message of a client in the REST JSON of its API."""
    from google.protobuf.json_format import MessageToDict

    found: Item = MessageToDict(type(message).pb(message))
    return found
