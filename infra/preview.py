"""The offline preview: a stack's resources before they exist, from the program itself. No cloud, no Pulumi CLI.

The real, unmodified `__main__.py` runs with the stack's real configuration in a process of its own, exactly as
Pulumi's Python language host runs it, against an engine on a loopback port that speaks the SDK's own protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from infra.engine.configuration import ENCRYPTED_PLACEHOLDER, load_configuration
from infra.engine.errors import EngineRefusal, PreviewError, ProgramFailed, ProgramRefused, ProjectError
from infra.engine.process import Program
from infra.engine.project import find_project, load_project
from policies.resources import Resource, ResourceSet, Value

__all__ = [
    "ENCRYPTED_PLACEHOLDER",
    "EngineRefusal",
    "Preview",
    "PreviewError",
    "ProgramFailed",
    "ProgramRefused",
    "ProjectError",
    "find_project",
    "preview",
]


@final
@dataclass(frozen=True, kw_only=True)
class Preview:
    """What `pulumi up` would register."""

    project: str
    """Name of the project."""
    stack: str
    """Name of the stack."""
    resources: ResourceSet
    """All that the stack registers, in the order of the program; the providers among them."""
    external: tuple[Resource, ...] = ()
    """What the program only reads (`.get`, stack references): it exists already and is not the stack's to pay."""
    outputs: Mapping[str, Value] = field(default_factory=dict)
    """The outputs of the stack."""
    log: tuple[str, ...] = ()
    """What the program printed, then what it logged (`warning: ...`)."""
    config: Mapping[str, Value] = field(default_factory=dict)
    """The configuration that the program got, by full names, as text; SECRET in place of what is encrypted."""


def preview(stack: str, project_dir: Path, *, timeout: float = 120) -> Preview:
    """The preview of `stack` of the project in `project_dir`, which has the Pulumi.yaml.

    The program has `timeout` seconds. Raises ProjectError, ProgramRefused, ProgramFailed or EngineRefusal, all of
    them PreviewError.
    """
    project = load_project(project_dir)
    configuration = load_configuration(project, stack)
    with Program(project.folder, timeout) as program:
        # Imported while the program's process starts: gRPC and Pulumi's SDK take as long here as there.
        from infra.engine.session import observe

        seen = observe(program, project, stack, configuration)
    return Preview(
        project=project.name,
        stack=stack,
        resources=seen.resources,
        external=seen.external,
        outputs=seen.outputs,
        log=seen.log,
        config=configuration.shown(),
    )
