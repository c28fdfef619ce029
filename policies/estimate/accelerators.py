"""Which TPU a block asks for: a v6e shape, something of another generation, or something that nobody can see yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias, final

from policies.estimate.market import unknown
from policies.estimate.model import UnknownInput, Unpriced
from policies.hardware.errors import HardwareError
from policies.hardware.slices import DEFAULT_TPU, Shape, shape, shape_of_topology
from policies.resources import Opaque, Resource, ResourceError, Value, dig, dotted, shown

GENERATION: Final = "v6e"
_KEYS: Final = ("acceleratorType", "acceleratorConfig")
_DECIDES: Final = "how many chips bill"


@final
@dataclass(frozen=True, kw_only=True)
class OtherTpu:
    """A TPU that is no v6e: counted, never priced as one."""

    name: str
    """`v5litepod-16`, or `v2-8 (provider default)`."""

    @property
    def unpriced(self) -> Unpriced:
        """Its line."""
        name = self.name.partition(" ")[0]
        reason = f"no price for {self.name}: spotrail prices {GENERATION} chips only"
        return Unpriced(item=f"tpu.{name}", reason=reason, quantity=Decimal(1), unit="slice-hour")


Accelerator: TypeAlias = Shape | OtherTpu | UnknownInput


def accelerator(resource: Resource, block: Value, *at: str | int) -> Accelerator:
    """What the block of a node asks for; `at` is where the block stands in the resource.

    Raises ResourceError where the type and the configuration are both set, or name a v6e shape that does not exist.
    """
    name, config = (dig(block, key) for key in _KEYS)
    for key, value in zip(_KEYS, (name, config), strict=True):
        if isinstance(value, Opaque):
            return unknown(value, *at, key, decides=_DECIDES)
    if name and config:
        where = f"{dotted(at)}: " if at else ""
        raise ResourceError(
            f"{resource.urn}: {where}acceleratorType and acceleratorConfig are both set; Google takes only one"
        )
    if isinstance(config, Mapping) and config:
        return _configured(resource, config, *at, "acceleratorConfig")
    if not name:
        return OtherTpu(name=f"{DEFAULT_TPU} (provider default)")
    if not isinstance(name, str):
        raise ResourceError(f"{resource.urn}: {dotted((*at, 'acceleratorType'))} is {shown(name)}; it must be text")
    if not name.lower().startswith(GENERATION):
        return OtherTpu(name=name)
    try:
        return shape(name)
    except HardwareError as error:
        raise ResourceError(f"{resource.urn}: {error}") from error


def asked_block(resource: Resource) -> Value:
    """What the inputs of a TPU VM ask for; where they say nothing, what the provider answered.

    An answer names both the type and the configuration of one machine; that is no contradiction.
    """
    if any(resource.inputs.get(key) is not None for key in _KEYS):
        return resource.inputs
    answered = resource.outputs.get("acceleratorType")
    if answered == DEFAULT_TPU:
        return {}
    return resource.outputs if answered is None else {"acceleratorType": answered}


def _configured(resource: Resource, config: Mapping[str, Value], *at: str | int) -> Accelerator:
    kind, topology = config.get("type"), config.get("topology")
    for key, value in (("type", kind), ("topology", topology)):
        if isinstance(value, Opaque):
            return unknown(value, *at, key, decides=_DECIDES)
        if not isinstance(value, str):
            raise ResourceError(f"{resource.urn}: {dotted((*at, key))} is {shown(value)}; it must be text")
    if str(kind).lower() != GENERATION:
        return OtherTpu(name=f"{kind} {topology}")
    try:
        return shape_of_topology(str(topology))
    except HardwareError as error:
        raise ResourceError(f"{resource.urn}: {error}") from error
