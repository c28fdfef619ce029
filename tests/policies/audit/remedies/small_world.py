"""A world in a dictionary that hands can look at and change, killed on request: the state machine on its own.

The real clients against real servers are in test_hands.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from policies.audit.record import Item
from policies.audit.remedies.applying import HandsError
from policies.audit.remedies.model import Action, Step
from policies.audit.remedies.steps import snapshot_name

DISK: Final = "projects/p/zones/us-central1-b/disks/llama"
SNAPSHOT: Final = f"projects/p/global/snapshots/{snapshot_name('llama', {'id': '42'})}"


class Killed(BaseException):
    """The process ends here, as by SIGKILL."""


@final
@dataclass
class SmallWorld:
    """Resources by link; every look and act counts, and the `killed_at`-th ends the process."""

    items: dict[str, dict[str, Any]]
    killed_at: int = -1
    fails: frozenset[str] = frozenset()
    """Texts of steps whose call is refused."""
    lost: frozenset[str] = frozenset()
    """Texts of steps whose call is done, and whose answer is lost."""
    calls: int = 0
    acted: list[str] = field(default_factory=list)

    def look(self, resource: str) -> Item | None:
        self._tick()
        return copy.deepcopy(self.items.get(resource))

    def act(self, step: Step) -> None:
        self._tick()
        if step.text in self.fails:
            raise HandsError(f"{step.action.value}: 400 refused")
        self.acted.append(step.action.value)
        _EFFECTS[step.action](self.items, step)
        self._tick()
        if step.text in self.lost:
            raise HandsError(f"{step.action.value}: connection reset")

    def _tick(self) -> None:
        if self.calls == self.killed_at:
            raise Killed
        self.calls += 1


def _throughput(items: dict[str, dict[str, Any]], step: Step) -> None:
    items[step.resource]["provisionedThroughput"] = str(step.arguments["mibps"])


def _snapshot(items: dict[str, dict[str, Any]], step: Step) -> None:
    link = f"projects/p/global/snapshots/{step.arguments['snapshot']}"
    items[link] = {"name": step.arguments["snapshot"], "status": "READY", "sourceDiskId": items[step.resource]["id"]}


def _delete(items: dict[str, dict[str, Any]], step: Step) -> None:
    del items[step.resource]


def _detach(items: dict[str, dict[str, Any]], step: Step) -> None:
    users = items[step.resource]["users"]
    users[:] = [user for user in users if not user.endswith(str(step.arguments["instance"]))]


_EFFECTS: Final[Mapping[Action, Callable[[dict[str, dict[str, Any]], Step], None]]] = {
    Action.SET_THROUGHPUT: _throughput,
    Action.CREATE_SNAPSHOT: _snapshot,
    Action.DELETE_DISK: _delete,
    Action.DETACH_DISK: _detach,
    Action.RELEASE_ADDRESS: _delete,
}
