"""The command in this process, the stacks of the house, and the files that Pulumi would write of them."""

from __future__ import annotations

import functools
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias, final

import pytest

import infra.preview
from infra.preview import Preview
from policies.resources import SECRET, UNKNOWN, Resource, ResourceSet, Value
from scripts.cli import run

ROOT = Path(__file__).parent.parent.parent
UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SECRET_OBJECT = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:AAAA:BBBB"}


@final
@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of a command."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """Its output as strict JSON."""
        assert (self.returncode, self.stderr) == (0, "")
        return strictly(self.stdout)


Command: TypeAlias = Callable[..., Ran]


def strictly(text: str) -> dict[str, Any]:
    """One JSON object whose numbers are strings."""
    parsed: dict[str, Any] = json.loads(text, parse_constant=refuse, parse_float=refuse)
    return parsed


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON of ours")


@pytest.fixture(scope="session", autouse=True)
def shared_previews() -> Iterator[None]:
    """One preview of each stack for all tests: what differs between them comes after the preview."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(infra.preview, "preview", functools.cache(infra.preview.preview))
        yield


@pytest.fixture
def spotrail(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command line in a folder, with standard input and more environment variables."""

    def ran(*arguments: str, cwd: Path = ROOT, stdin: bytes = b"", **more: str) -> Ran:
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        for name, value in more.items():
            monkeypatch.setenv(name, value)
        code = run(arguments)
        said = capsys.readouterr()
        return Ran(returncode=code, stdout=said.out, stderr=said.err)

    return ran


@pytest.fixture(scope="session")
def preview_text() -> Callable[[str], bytes]:
    """What `pulumi preview --json` writes of a stack of the house that does not exist yet."""
    return lambda stack: as_preview(infra.preview.preview(stack, ROOT))


@pytest.fixture(scope="session")
def state_text() -> Callable[[str], bytes]:
    """What `pulumi stack export` writes of a stack of the house that stands."""
    return lambda stack: as_state(infra.preview.preview(stack, ROOT))


def as_preview(seen: Preview) -> bytes:
    """A preview of the creation of everything, as the CLI writes it."""
    steps = [
        {
            "op": "create",
            "urn": resource.urn,
            **({"provider": resource.options.provider} if resource.options.provider else {}),
            "newState": entry(resource, as_planned),
            "detailedDiff": None,
        }
        for resource in seen.resources
    ]
    config = {key: as_planned(value) for key, value in seen.config.items()}
    summary = {"create": len(steps)}
    return text({"config": config, "steps": steps, "duration": 1234567890, "changeSummary": summary})


def as_planned(value: Value) -> Any:
    """`value` as a preview has it."""
    return written(value, "", "[secret]", lambda key: UNKNOWN_TEXT)


def as_state(seen: Preview) -> bytes:
    """The state after the creation: what was unknown has become a name or a link, what is secret a ciphertext."""
    resources = []
    for resource in seen.resources:
        made = entry(resource, lambda value: written(value, "it", SECRET_OBJECT))
        for prop, value in resource.inputs.items():
            sources = resource.options.property_dependencies.get(prop, ())
            made["inputs"][prop] = written(value, prop, SECRET_OBJECT, functools.partial(link, sources, seen.resources))
        made["outputs"] |= made["inputs"]
        if resource.custom:
            made |= {"id": f"projects/acme/things/{resource.name}", "created": "2026-11-01T00:00:00Z"}
        resources.append(made)
    manifest = {"time": "2026-11-29T00:00:00Z", "magic": "0" * 64, "version": "v3.205.0"}
    return text({"version": 3, "deployment": {"manifest": manifest, "resources": resources, "metadata": {}}})


def entry(resource: Resource, value_of: Callable[[Value], Any]) -> dict[str, Any]:
    """One resource in the shape that previews and states share."""
    options = resource.options
    inputs = {key: value_of(value) for key, value in resource.inputs.items()}
    outputs = {key: value_of(value) for key, value in resource.outputs.items()}
    return {
        "urn": resource.urn,
        "custom": resource.custom,
        "type": resource.type,
        "inputs": inputs,
        "outputs": {**inputs, **outputs},
        **({"parent": options.parent} if options.parent else {}),
        **({"provider": options.provider} if options.provider else {}),
        "protect": options.protect,
        "retainOnDelete": options.retain_on_delete,
        "dependencies": list(options.dependencies),
        "propertyDependencies": {key: list(urns) for key, urns in options.property_dependencies.items()},
    }


def written(value: Value, key: str, secret: Any, unknown: Callable[[str], Any] = str) -> Any:
    """`value` as JSON has it; `key` is what an unknown in it is known by."""
    if value is UNKNOWN:
        return unknown(key)
    if value is SECRET:
        return secret
    if isinstance(value, Mapping):
        return {name: written(inner, name, secret, unknown) for name, inner in value.items()}
    if isinstance(value, tuple):
        return [written(inner, key, secret, unknown) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


def link(sources: tuple[str, ...], resources: ResourceSet, key: str) -> str:
    """What an input becomes that came from one of `sources`: the link of the one whose type the input is named by."""
    named = [urn for urn in sources if urn.split("::")[2].rpartition(":")[2].lower() in key.lower()]
    for urn in (*named, *sources):
        target = resources.get(urn)
        name = target.value("name") if target else None
        return f"projects/acme/things/{name if isinstance(name, str) else urn.rpartition('::')[2]}"
    return f"{key}-known-now"


def text(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=2).encode()
