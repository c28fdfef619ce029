"""How a kind of resource comes to be, changes and goes, for those who declare what they want."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from policies.audit.record import Part
from tests.google_cloud.errors import Refusal, not_found
from tests.google_cloud.shapes import Item
from tests.google_cloud.world import World

Fields: TypeAlias = Mapping[str, Any]


@final
@dataclass(frozen=True, kw_only=True)
class Lifecycle:
    """One kind."""

    find: Callable[[World, str], Item | None]
    """By its path."""
    insert: Callable[[World, str, Fields], Item]
    """Raises Refusal; only asked where nothing is at the path."""
    patch: Callable[[World, Item, Fields], None]
    """Sets fields. Raises Refusal."""
    delete: Callable[[World, str, Item, Mapping[str, str]], None]
    """Removes it; the last are options such as `force`. Raises Refusal."""

    def get(self, world: World, path: str) -> Item:
        """The resource. Raises Refusal (404)."""
        found = self.find(world, path)
        if found is None:
            raise not_found(path)
        return found

    def taken(self, path: str) -> Refusal:
        """What the second of a name is told."""
        return Refusal(409, "alreadyExists", f"The resource '{path}' already exists")


def by_path(part: Part) -> Callable[[World, str], Item | None]:
    """How a resource of the inventory is found."""

    def find(world: World, path: str) -> Item | None:
        return world.inventory[part].get(path)

    return find


def placed(path: str) -> dict[str, str]:
    """Name, and zone or region, of a Compute resource from its path."""
    parts = path.split("/")
    place = {parts[2][:-1]: parts[3]} if parts[2] in ("zones", "regions") else {}
    return {"name": parts[-1], **place}


def drop(part: Part) -> Callable[[World, str, Item, Mapping[str, str]], None]:
    """Removes a resource of the inventory that nothing can hold."""

    def delete(world: World, path: str, item: Item, options: Mapping[str, str]) -> None:
        world.inventory[part].pop(path, None)

    return delete


def set_fields(world: World, item: Item, fields: Fields) -> None:
    """Fields that are given replace what is there; null takes away."""
    for key, value in fields.items():
        if value is None:
            item.pop(key, None)
        else:
            item[key] = value
