"""What Pulumi's steps do to a resource, and one change for all the steps of one.

A replacement is one logical step, `replace`, or three with `--show-replacement-steps`: the same change either way. Of
the three, `delete-replaced` alone is a deletion: what hangs on something that is replaced goes before it, and comes
back only where the program still has it. Without `--show-replacement-steps` Pulumi does not show that at all.
Something else's resource (`external`) is on neither side of a change: the stack does not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from policies.changes import Change, Op
from policies.readers.states import Record
from policies.resources import UNKNOWN, Resource, Value, has_opaque

OPS: Final[Mapping[str, Op]] = {
    "same": Op.SAME,
    "create": Op.CREATE,
    "update": Op.UPDATE,
    "delete": Op.DELETE,
    "replace": Op.REPLACE,
    "create-replacement": Op.REPLACE,
    "delete-replaced": Op.REPLACE,
    "read": Op.READ,
    "read-replacement": Op.REPLACE,
    "refresh": Op.REFRESH,
    "discard": Op.DELETE,
    "discard-replaced": Op.REPLACE,
    "remove-pending-replace": Op.DELETE,
    "import": Op.IMPORT,
    "import-replacement": Op.REPLACE,
    "diff": Op.SAME,
    "extend-parameterize": Op.SAME,
}
"""Every kind of step. Source: Pulumi's pkg/resource/deploy/step.go."""
LEAVING: Final = frozenset({"delete", "delete-replaced", "discard", "discard-replaced", "remove-pending-replace"})
"""Steps that make nothing."""
_RANK: Final = (Op.READ, Op.SAME, Op.REFRESH, Op.UPDATE, Op.IMPORT, Op.CREATE, Op.DELETE, Op.REPLACE)
"""Of several steps of one resource, the one further right says what the change is."""
PENDING: Final = "#pending-delete"
"""What the URN of a replaced resource ends in that still stands: its URN is that of its replacement."""


@final
@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a preview."""

    op: str
    """As Pulumi names it."""
    urn: str
    old: Record | None
    new: Record | None
    replace_reasons: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def kind(self) -> Op:
        """What it does; for an op that is not known, what its two sides say."""
        if self.op in OPS:
            return OPS[self.op]
        if self.old and self.new:
            return Op.UPDATE
        return Op.DELETE if self.old else Op.CREATE

    @property
    def of_pending(self) -> bool:
        """Whether it deletes what an earlier, interrupted replacement left standing."""
        return self.op == "delete" and self.old is not None and self.old.pending_delete

    @property
    def stood(self) -> bool:
        """Whether its old side is there before the change.

        What this change deletes before it makes it anew is marked as deleted already, and so is what an earlier,
        interrupted run has deleted. Of the former alone Pulumi says why it is replaced.
        """
        if self.old is None or self.old.external:
            return False
        return self.old.stands or bool(self.replace_reasons)


def changes_of(steps: Iterable[Step]) -> tuple[Change, ...]:
    """One change a URN, in the order of the first steps; deletions of pending resources under URNs of their own."""
    groups: dict[str, list[Step]] = {}
    copies: dict[str, int] = {}
    for step in steps:
        if step.of_pending:
            copies[step.urn] = copies.get(step.urn, 0) + 1
            groups[pending_urn(step.urn, copies[step.urn])] = [step]
        else:
            groups.setdefault(step.urn, []).append(step)
    return tuple(_change(urn, group) for urn, group in groups.items())


def pending_urn(urn: str, copy: int) -> str:
    """The URN under which the `copy`th resource of `urn` that is still to be deleted stands."""
    return f"{urn}{PENDING}" if copy == 1 else f"{urn}{PENDING}-{copy}"


def _change(urn: str, steps: Sequence[Step]) -> Change:
    before = _side(steps, "old")
    after = _side([step for step in reversed(steps) if step.op not in LEAVING], "new")
    kinds = {step.kind for step in steps}
    op = Op.REPLACE if {Op.CREATE, Op.DELETE} <= kinds else max(kinds, key=_RANK.index)
    op = _of_sides(op, before, after, steps)
    changed = _joined(step.changed for step in steps)
    return Change(
        urn=urn,
        op=op,
        before=replace(before, urn=urn) if before else None,
        after=replace(_completed(after, before, op, changed), urn=urn) if after else None,
        replace_reasons=_joined(step.replace_reasons for step in steps),
        changed=changed,
    )


def _side(steps: Sequence[Step], name: str) -> Resource | None:
    """The resource that stands on one side, by the first step that shows that side."""
    for step in steps:
        record = step.old if name == "old" else step.new
        if record is not None:
            return record.resource if (step.stood if name == "old" else record.stands) else None
    return None


def _of_sides(op: Op, before: Resource | None, after: Resource | None, steps: Sequence[Step]) -> Op:
    """`op` as far as it touches what is the stack's own."""
    foreign = any(record.external for step in steps for record in (step.old, step.new) if record)
    if before is None and after is None and foreign:
        return Op.READ
    if op is Op.REPLACE and before and after is None:
        return Op.DELETE  # Replaced by something that the stack only reads.
    return op


def _completed(after: Resource, before: Resource | None, op: Op, changed: tuple[str, ...]) -> Resource:
    """`after` with what the provider will answer, as far as it is known.

    Pulumi shows a step before it happens: what is the same has the old outputs. Of an update, an input that the program
    does not set keeps its old output unless it is among what changes; then it is UNKNOWN. What is made anew has no
    old outputs, and an output that is not known yet is a default, which every source leaves open.
    """
    if op in (Op.SAME, Op.REFRESH) and before is not None:
        return replace(after, outputs={**before.outputs, **_known(after.outputs)})
    if op is Op.UPDATE and before is not None:
        top = {path.partition(".")[0].partition("[")[0] for path in changed}
        kept = {
            key: UNKNOWN if key in top and key not in after.inputs else value for key, value in before.outputs.items()
        }
        return replace(after, outputs={**kept, **after.outputs})
    return replace(after, outputs=_known(after.outputs))


def _known(outputs: Mapping[str, Value]) -> dict[str, Value]:
    return {key: value for key, value in outputs.items() if not has_opaque(value)}


def _joined(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))
