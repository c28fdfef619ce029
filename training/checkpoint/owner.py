"""Who made a checkpoint: written first, so that a run deletes nothing but what it provably made itself.

A copy in another folder, or under another name, is nobody's: no run deletes it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import final

from training.checkpoint.documents import DamagedError, sealed, unsealed
from training.checkpoint.errors import NotThereError
from training.checkpoint.names import OWNER
from training.checkpoint.store import AbstractStore


@final
@dataclass(frozen=True, kw_only=True)
class Owner:
    """What the object says."""

    run: str
    attempt: str
    epoch: int
    """Of the lease under which it was begun."""
    prefix: str
    """The folder that it was written into."""
    root: str
    """Where that folder was."""

    def content(self) -> bytes:
        return sealed(asdict(self))


def owner_of(store: AbstractStore, prefix: str) -> Owner | None:
    """Who made a checkpoint; None where nothing proves it: no owner, a damaged one, or one of another place."""
    try:
        data = unsealed(store.get(f"{prefix}/{OWNER}"), prefix)
        owner = Owner(**data)
    except (NotThereError, DamagedError, TypeError):
        return None
    return owner if (owner.prefix, owner.root) == (prefix, store.url) else None
