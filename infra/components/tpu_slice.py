"""A TPU slice, in one of three forms. `infra.plan.slices` decides which; the forms stand in `slice_*.py` beside this.

Never a `tpu.V2QueuedResource`: it cannot ask for spot, and what asks for nothing is billed at full price.

Every slice is bounded. What happens at the end:
- one host on Compute Engine: Google deletes the instance with its boot disk after `max_run_duration`. Pulumi does not
  notice until `pulumi up --refresh`, which then makes a new one: that is the way to ask for another term;
- many hosts on Compute Engine: Google deletes the hosts one after another, at the end of each one's term. The group
  must not bring them back, so its repair is off. It stays as an empty shell that bills nothing;
- a node of the Cloud TPU API has no such field. Its `ttl` label bounds it: the guard deletes what has outlived it.
A preempted slice is gone in the same way, and for the same reason: nothing may bring chips back, and with them the
bill, but a person who runs `pulumi up`: with `--refresh` for an instance; with `--replace` for a group, which stays
empty, and for a node, which stays as PREEMPTED. A refresh sees no difference in either.

A slice changes as a whole. Chips that share a torus cannot be exchanged host by host, and under one quota a slice
cannot exist twice, so what cannot change in place replaces it, the old one first. A new model volume is such a change:
the hosts are gone before the volume that they read is, and nobody loses a disk that is mounted.
Labels change in place in every form.
A changed startup script alone replaces a group, whose template cannot change, and waits for the next boot elsewhere.
"""

from __future__ import annotations

from typing import Final, final

import pulumi

from infra.components import slice_group, slice_instance, slice_node
from infra.components.slice_parts import TpuSliceArgs
from infra.plan.slices import Form

MAKERS: Final = {
    Form.INSTANCE: slice_instance.make,
    Form.GROUP: slice_group.make,
    Form.NODE: slice_node.make,
}


@final
class TpuSlice(pulumi.ComponentResource):
    """One slice: an instance, a group with its template and topology, or a node."""

    resource: pulumi.CustomResource
    """What holds the chips: `compute.Instance`, `compute.InstanceGroupManager` or `tpu.V2Vm`."""
    cloud_name: str
    """Its name in the cloud; its hosts' too, with a suffix where it is a group."""

    def __init__(self, name: str, args: TpuSliceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("spotrail:infra:TpuSlice", name, None, opts)
        plan = args.plan
        self.resource = MAKERS[plan.form](name, args, self)
        self.cloud_name = plan.cloud_name
        self.register_outputs({"id": self.resource.id, "name": plan.cloud_name, "chips": plan.shape.chips})
