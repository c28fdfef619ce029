"""One preview from the first order to the finished graph, or to the error that says why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from infra.engine.channel import Message
from infra.engine.configuration import ENCRYPTED_PLACEHOLDER, Configuration
from infra.engine.deployment import Deployment
from infra.engine.errors import EngineRefusal, ProgramFailed, ProgramRefused
from infra.engine.graph import in_order, split
from infra.engine.monitor import served
from infra.engine.position import shown
from infra.engine.process import Program
from infra.engine.project import Project
from infra.engine.provider import FILLED
from infra.engine.urns import Namer
from policies.resources import Resource, ResourceSet, Value

ORGANIZATION: Final = "organization"
"""What a program is told where no backend knows an organization; Pulumi's own DIY backends say the same."""


@final
@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a program that ran to its end has registered."""

    resources: ResourceSet
    external: tuple[Resource, ...]
    outputs: Mapping[str, Value]
    log: tuple[str, ...]


def observe(program: Program, project: Project, stack: str, configuration: Configuration) -> Seen:
    """Run `program` for `stack` and watch what it registers. Raises PreviewError."""
    deployment = Deployment(Namer(stack=stack, project=project.name), configuration)
    # Served until the program's process has ended: gRPC in it would complain about a server that goes away first.
    with served(deployment) as address:
        ended = program.ask(_order(address, program, project, stack, configuration))
        if ended["ended"] == "refused":
            raise ProgramRefused(ended["message"] + _hint(ended["message"], configuration))
        checked = program.ask(_question(deployment))
        _settle(deployment, ended, checked["problems"])
        printed = program.output()
    resources, external = split(deployment.registrations)
    return Seen(
        resources=resources,
        external=external,
        outputs=deployment.outputs(),
        log=(*printed, *deployment.log),
    )


def _order(address: str, program: Program, project: Project, stack: str, configuration: Configuration) -> Message:
    return {
        "address": address,
        "program": project.program,
        "project": project.name,
        "stack": stack,
        "organization": ORGANIZATION,
        "root": str(project.root),
        "config": dict(configuration.values),
        "secret_keys": sorted(configuration.secrets),
        "asks": sorted(FILLED),
        "dump_at": program.dump_at,
    }


def _question(deployment: Deployment) -> Message:
    asked = (found for found in in_order(deployment.registrations) if found.custom)
    return {
        "resources": [
            {
                "urn": found.urn,
                "type": found.type,
                "place": shown(found.trace),
                # What is only read has as inputs whatever part of its state the program knows: not all that is needed.
                "inputs": {} if found.external else found.inputs,
            }
            for found in asked
        ]
    }


def _settle(deployment: Deployment, ended: Message, problems: list[str]) -> None:
    """Raise what explains the end best: the refusals of the engine, what does not fit, then the program's own error."""
    broken = [error for error in deployment.refusals if not isinstance(error, EngineRefusal)]
    refused = [str(error) for error in deployment.refusals if isinstance(error, EngineRefusal)]
    if broken:
        raise broken[0]
    if refused or problems:
        raise EngineRefusal("\n".join([*dict.fromkeys(refused), *problems]))
    if ended["ended"] == "failed":
        raise ProgramFailed(ended["message"])
    if not deployment.registrations:
        raise ProgramFailed("the program ended and no stack was registered; has it configured Pulumi's runtime anew?")


def _hint(message: str, configuration: Configuration) -> str:
    """Why a value that is right under Pulumi is not right here, where that is the reason."""
    if ENCRYPTED_PLACEHOLDER not in message or not configuration.secrets:
        return ""
    return (
        f"\n  {ENCRYPTED_PLACEHOLDER} stands for a value that the stack file keeps encrypted and that cannot be read"
        " offline. For a preview, give it unencrypted."
    )
