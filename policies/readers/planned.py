"""From the steps of a preview, however they were written, to a reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from policies.changes import Change, Op, Reading, SourceKind
from policies.readers.document import Json
from policies.readers.errors import ReadError
from policies.readers.notes import Notes
from policies.readers.operations import LEAVING, OPS, Step, changes_of
from policies.readers.states import Record, parts_of, record_of
from policies.readers.values import Values
from policies.resources import STACK_TYPE, Resource, ResourceSet, Value

_STILL: Final = frozenset({"same", "diff", "extend-parameterize"})
"""Steps that change nothing: one side stands for the other where only one is shown."""
_BOTH: Final = frozenset({"update", "replace", "create-replacement"})
_NEW: Final = frozenset({"create", "import", "import-replacement"}) | _BOTH
_OLD: Final = frozenset({"delete", "delete-replaced"}) | _BOTH
_REPLACING: Final = frozenset({"create-replacement", "delete-replaced"})
"""The two physical halves of a `replace`, which a summary may or may not count; the second alone is none."""
_FOREIGN: Final = frozenset({"read", "read-replacement", "discard", "discard-replaced"})
"""Steps of resources that are only read, for which the stack does not pay; a summary may or may not count them."""
_CHANGING: Final = ("create", "update", "replace", "delete", "import")
"""Steps that Pulumi always shows: where one is missing, the file is not what Pulumi wrote."""


def step_of(found: Mapping[str, Json], where: str, values: Values, old: str, new: str) -> Step:
    """The step at `where`, whose states are the members `old` and `new`. Raises ReadError."""
    op, urn = found.get("op"), found.get("urn")
    if not isinstance(op, str) or not isinstance(urn, str):
        raise ReadError(f"{where}: a step has an op and a urn; this one has none")
    before = _side(found.get(old), where, old, values)
    after = None if op in LEAVING else _side(found.get(new), where, new, values)
    if op in _STILL:
        before, after = before or after, after or before
    for name, record, needed in ((old, before, _OLD), (new, after, _NEW)):
        if record is None and op in needed:
            raise ReadError(f"{where}: {op} of {urn} has no {name}; the file was cut or filtered: preview again")
        if record is not None and record.resource.urn != values.name(urn) and name == new:
            raise ReadError(f"{where}: the step is of {urn} and its {name} of {record.resource.urn}")
    return Step(
        op=op,
        urn=values.name(urn),
        # What is imported stood in the cloud, but not in the stack.
        old=None if op == "import" else before,
        new=after,
        replace_reasons=_texts(found, ("replaceReasons", "keys"), where),
        changed=_texts(found, ("diffReasons", "diffs"), where) or _detailed(found),
    )


def _side(found: Json, where: str, name: str, values: Values) -> Record | None:
    return None if found is None else record_of(found, f"{where}.{name}", values)


def _texts(found: Mapping[str, Json], keys: Iterable[str], where: str) -> tuple[str, ...]:
    for key in keys:
        value = found.get(key)
        if value is None:
            continue
        if not isinstance(value, list):
            raise ReadError(f"{where}: {key} must be a list of texts")
        return tuple(item for item in value if isinstance(item, str))
    return ()


def _detailed(found: Mapping[str, Json]) -> tuple[str, ...]:
    detailed = found.get("detailedDiff")
    return tuple(detailed) if isinstance(detailed, dict) else ()


def reading_of(
    steps: Sequence[Step], counted: Mapping[str, int], config: Mapping[str, Value], notes: Notes, urns: Sequence[str]
) -> Reading:
    """The reading of all steps; `counted` is Pulumi's own count by op, `urns` name the stack where no step does."""
    changes = changes_of(steps)
    _remark(steps, changes, notes)
    project, stack = place_of([step.urn for step in steps] or urns)
    return Reading(
        kind=SourceKind.PREVIEW,
        project=project,
        stack=stack,
        before=ResourceSet(tuple(change.before for change in changes if change.before)),
        after=ResourceSet(tuple(change.after for change in changes if change.after)),
        changes=changes,
        hidden=_hidden(steps, counted, notes),
        config=config,
    )


def place_of(urns: Sequence[str]) -> tuple[str, str]:
    """Project and stack, by the URN of the stack itself or the first one; empty where there is none."""
    own = next((urn for urn in urns if f"::{STACK_TYPE}::" in urn), urns[0] if urns else "")
    parts = parts_of(own)
    return (parts.project, parts.stack) if parts else ("", "")


def refuse_missing(steps: Sequence[Step], counted: Mapping[str, int], place: str) -> None:
    """Raise ReadError where Pulumi counted more changes than there are steps: what the change costs is not in the file.

    A refresh is shown as one and counted as what it did.
    """
    missing = {op: count for op, count in _missing(steps, counted).items() if op in _CHANGING}
    if sum(missing.values()) > sum(step.op == "refresh" for step in steps):
        words = ", ".join(f"{count:,} {op}" for op, count in missing.items())
        raise ReadError(
            f"{place}: Pulumi counted more changes than there are steps (missing: {words}): the file was cut or "
            "filtered, and what is missing may cost anything; preview again"
        )


def _missing(steps: Sequence[Step], counted: Mapping[str, int]) -> dict[str, int]:
    """How many steps Pulumi counted and does not show, by op."""
    logical = {
        ("replace" if step.op == "create-replacement" else step.op, step.urn, place if step.of_pending else 0)
        for place, step in enumerate(steps, start=1)
    }
    shown = Counter(op for op, _, _ in logical)
    left_out = _REPLACING | _FOREIGN
    return {op: count - shown[op] for op, count in counted.items() if op not in left_out and count > shown[op]}


def _hidden(steps: Sequence[Step], counted: Mapping[str, int], notes: Notes) -> int:
    """How many resources Pulumi counted and does not show.

    The stack and providers that the program names are counted and shown like all others (the stack always), default
    providers are neither. Whether a hidden one is a component cannot be seen: each counts as one that may bill.
    """
    missing = _missing(steps, counted)
    for op, count in missing.items():
        if op != "same":  # of those, the price of the change speaks
            notes.add(
                f"Pulumi counted {count:,} more {op} than the preview shows: its totals are not those of the stack"
            )
    return sum(missing.values())


def _remark(steps: Sequence[Step], changes: Sequence[Change], notes: Notes) -> None:
    for step in steps:
        if step.op not in OPS:
            notes.add(f'the op "{step.op[:40]}" is not known: read by its two sides', _name(step.urn))
        if step.of_pending:
            notes.add("replaced earlier and still standing; this change deletes it", _name(step.urn))
    halves: dict[str, set[str]] = {}
    for step in steps:
        halves.setdefault(step.urn, set()).add(step.op)
    for urn, ops in halves.items():
        if ops == {"delete-replaced"}:
            notes.add("deleted together with what it hangs on, which is replaced, and not made again", _name(urn))
    for change in changes:
        gone = change.before
        if change.op is Op.DELETE and isinstance(gone, Resource) and gone.options.retain_on_delete:
            notes.add("retained on delete: it leaves the stack, stays in the cloud and goes on billing", gone.name)


def _name(urn: str) -> str:
    parts = parts_of(urn)
    return parts.name if parts else urn
