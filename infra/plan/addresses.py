"""The address plan: which private range a stack has, and how the regions share it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Final

from policies.errors import InputError

SHORTEST_PREFIX: Final = 8
SPLIT: Final = 2
"""Bits of the range that tell regions apart: four of them."""
LONGEST_PREFIX: Final = 29 - SPLIT
"""A quarter of it is a /29, the smallest subnetwork that Google makes."""
RESERVED: Final = 4
"""Addresses that Google keeps in every subnetwork: network, gateway, last but one, broadcast."""
PRIVATE: Final = tuple(ipaddress.IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


def private_range(text: str) -> ipaddress.IPv4Network:
    """The range that `text` means. Raises InputError unless it is a private IPv4 range of /8 to /27."""
    try:
        found = ipaddress.IPv4Network(text, strict=False)
    except ValueError as error:
        raise InputError(f"It must be an IPv4 range such as 10.64.0.0/20: {error}.") from None
    if not any(found.subnet_of(private) for private in PRIVATE):
        raise InputError(f"It must lie in a private range: {', '.join(str(private) for private in PRIVATE)}.")
    if not SHORTEST_PREFIX <= found.prefixlen <= LONGEST_PREFIX:
        raise InputError(f"It must be /{SHORTEST_PREFIX} to /{LONGEST_PREFIX}: each region gets a quarter of it.")
    if not text.startswith(f"{found.network_address}/"):
        raise InputError(f"A range is named by its first address. Did you mean {found}?")
    return found


def subnetworks(cidr: str, regions: Sequence[str]) -> Mapping[str, str]:
    """The quarter of `cidr` that each region gets, in the given order; four regions at most.

    Always a quarter, however few the regions are: a subnetwork cannot shrink, so one more region must not move the
    first. Raises InputError as `private_range`, and where there are more than four regions.
    """
    parts = [str(part) for part in private_range(cidr).subnets(prefixlen_diff=SPLIT)]
    if len(regions) > len(parts):
        raise InputError(f"It has room for {len(parts)} regions; the stack is in {len(regions)}: {', '.join(regions)}.")
    return dict(zip(regions, parts, strict=False))


def room(cidr: str) -> int:
    """Machines that a subnetwork of `cidr` has addresses for."""
    return ipaddress.IPv4Network(cidr).num_addresses - RESERVED
