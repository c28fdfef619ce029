"""What a source says about a stack: what stood, what will stand, and the steps between. Readers make it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from policies.resources import Resource, ResourceSet, Value


@final
class Op(enum.Enum):
    """What a deployment does to a resource, as `spotrail.estimate/1` names it."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    SAME = "same"
    READ = "read"
    IMPORT = "import"
    REFRESH = "refresh"


@final
class SourceKind(enum.Enum):
    """Where the resources were read."""

    PROGRAM = "program"
    PREVIEW = "preview"
    STATE = "state"


@final
@dataclass(frozen=True, kw_only=True)
class Change:
    """One step, with both sides of it."""

    urn: str
    op: Op
    before: Resource | None = None
    """What stands; None for what is created."""
    after: Resource | None = None
    """What will stand; None for what is deleted."""
    replace_reasons: tuple[str, ...] = ()
    """Inputs that force a replacement."""
    changed: tuple[str, ...] = ()
    """Inputs that differ."""


@final
@dataclass(frozen=True, kw_only=True)
class PolicyResult:
    """What a policy pack inside Pulumi said during a preview: somebody else's finding."""

    urn: str
    """The resource; empty where the policy is about the stack."""
    pack: str
    policy: str
    message: str
    mandatory: bool
    """Whether Pulumi itself fails on it."""


@final
@dataclass(frozen=True, kw_only=True)
class Reading:
    """All that one file or one program says."""

    kind: SourceKind
    project: str
    stack: str
    after: ResourceSet
    """What will stand, as far as the source shows it: for a state, what stands."""
    before: ResourceSet | None = None
    """What stands, as far as the source shows it; None where the source has no before (a program, a state)."""
    changes: tuple[Change, ...] = ()
    """The steps of a preview, one a URN; empty for a program and a state."""
    hidden: int = 0
    """Resources that exist and that the source does not show: then neither total is that of the stack."""
    possible: tuple[Resource, ...] = ()
    """Creations that were interrupted: they may exist and bill, and are outside every total."""
    config: Mapping[str, Value] = field(default_factory=dict)
    """Configuration by full name, as text; SECRET in place of what is secret."""
    policy_results: tuple[PolicyResult, ...] = ()
    """What Pulumi's own policy packs found; none where the source does not carry them, as `preview --json` does not."""
    notes: tuple[str, ...] = ()
    """What a reader of the result should know: an unknown op, a trailing text that was cut."""
