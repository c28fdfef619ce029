"""The real program, previewed offline: the three stacks as they are, and variants of their files."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pytest
import yaml

from infra.preview import Preview, preview
from policies.resources import Resource, cloud_name

ROOT = Path(__file__).resolve().parents[2]
COMPONENT = "spotrail:infra:"


@final
@dataclass(frozen=True)
class Graph:
    """A preview, and the questions that tests ask it."""

    preview: Preview

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.preview.resources)

    def of(self, token: str) -> tuple[Resource, ...]:
        """All whose type token ends in `token`: `Disk`, `tpu/v2Vm:V2Vm`."""
        return tuple(one for one in self if one.type.rpartition(":")[2] == token or one.type.endswith(token))

    def one(self, token: str, name: str | None = None) -> Resource:
        """The one of that type, and of that logical name."""
        found = [one for one in self.of(token) if name in (None, one.name)]
        assert len(found) == 1, f"{token} {name}: {[one.urn for one in found]}"
        return found[0]

    def component(self, token: str, name: str | None = None) -> Resource:
        """The one component of the type `token`: `Network`."""
        return self.one(f"{COMPONENT}{token}", name)

    def parent(self, one: Resource) -> Resource:
        """What `one` is a child of."""
        found = self.preview.resources.get(one.options.parent or "")
        assert found is not None, one.urn
        return found

    def names(self, urns: tuple[str, ...]) -> set[str]:
        """`Type name` of each URN."""
        return {f"{urn.split('::')[-2].rpartition(':')[2]} {urn.rpartition('::')[2]}" for urn in urns}

    def sources(self, one: Resource, key: str) -> set[str]:
        """`Type name` of everything that the input `key` takes its value from."""
        return self.names(one.options.property_dependencies.get(key, ()))

    def needs(self, one: Resource) -> set[str]:
        """`Type name` of everything that has to exist before `one`."""
        return self.names(one.options.dependencies)

    def cloud_names(self, token: str) -> set[str | None]:
        """Names in the cloud of all of that type."""
        return {cloud_name(one) for one in self.of(token)}


@pytest.fixture(scope="session")
def stack() -> Callable[[str], Graph]:
    """The preview of a shipped stack, made once."""
    made: dict[str, Graph] = {}

    def of(name: str) -> Graph:
        if name not in made:
            made[name] = Graph(preview(name, ROOT))
        return made[name]

    return of


@pytest.fixture(scope="session")
def dev(stack: Callable[[str], Graph]) -> Graph:
    return stack("dev")


@pytest.fixture(scope="session")
def staging(stack: Callable[[str], Graph]) -> Graph:
    return stack("staging")


@pytest.fixture(scope="session")
def prod(stack: Callable[[str], Graph]) -> Graph:
    return stack("prod")


@pytest.fixture(scope="session")
def variant(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Mapping[str, Any]], Graph]:
    """The same program with a changed stack file: `spotrail:` keys over those of the stack, mappings merged."""

    def of(name: str, changes: Mapping[str, Any]) -> Graph:
        folder = tmp_path_factory.mktemp(name)
        (folder / "infra" / "stacks").mkdir(parents=True)
        shutil.copy(ROOT / "Pulumi.yaml", folder)
        shutil.copy(ROOT / "infra" / "__main__.py", folder / "infra")
        file = yaml.safe_load((ROOT / "infra" / "stacks" / f"Pulumi.{name}.yaml").read_text("utf-8"))
        for key, value in changes.items():
            full = f"spotrail:{key}"
            file["config"][full] = merged(file["config"].get(full), value)
        (folder / "infra" / "stacks" / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump(file), "utf-8")
        return Graph(preview(name, folder))

    return of


def merged(old: Any, new: Any) -> Any:
    """`new` over `old`; a None in a mapping takes the key away."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return copy.deepcopy(new)
    both = {**old, **{key: merged(old.get(key), value) for key, value in new.items()}}
    return {key: value for key, value in both.items() if value is not None}


@pytest.fixture(scope="session")
def two_zones(variant: Callable[[str, Mapping[str, Any]], Graph]) -> Graph:
    """dev, serving in a second zone of another region as well."""
    return variant("dev", {"serving": {"hosts": 2, "zones": ["us-central1-b", "us-east5-b"]}})


@pytest.fixture(scope="session")
def zoo(variant: Callable[[str, Mapping[str, Any]], Graph]) -> Graph:
    """dev with every shape on both backends, and with capacity that is not spot."""
    shapes = {f"v6e-{chips}": f"{chips}" for chips in (1, 4, 8, 16, 32, 64, 128, 256)}
    slices: dict[str, Any] = {"trainer": None}
    for shape, chips in shapes.items():
        slices[f"gce{chips}"] = {"shape": shape, "mount_model": True}
        slices[f"node{chips}"] = {"shape": shape, "mount_model": True, "backend": "tpu-vm"}
    for backend in ("gce", "tpu-vm"):
        reservation = {"reservation": "half-a-pod"} if backend == "gce" else {}
        slices[f"paid-{backend}"] = {"shape": "v6e-8", "backend": backend, "capacity": "on-demand"}
        slices[f"kept-{backend}"] = {"shape": "v6e-8", "backend": backend, "capacity": "reserved", **reservation}
    slices["kept-group"] = {"shape": "v6e-16", "capacity": "reserved", "reservation": "half-a-pod"}
    return variant("dev", {"slices": slices, "model": {"throughput": 20_000}})


@pytest.fixture(scope="session")
def without_guard(variant: Callable[[str, Mapping[str, Any]], Graph]) -> Graph:
    """dev, where nobody looks for what has no metrics."""
    return variant("dev", {"guard": {"enabled": False, "apply": False}})


@pytest.fixture(scope="session")
def seldom(variant: Callable[[str, Mapping[str, Any]], Graph]) -> Graph:
    """dev with a guard that runs every six hours."""
    return variant("dev", {"guard": {"every_hours": 6}})


@pytest.fixture(scope="session")
def by_clock(variant: Callable[[str, Mapping[str, Any]], Graph]) -> Graph:
    """dev, whose model volume has its throughput in office hours."""
    return variant("dev", {"model": {"schedule": "mon-fri 08:00-18:00 Europe/Berlin 1200"}})


@pytest.fixture(scope="session")
def hooked(variant: Callable[[str, Mapping[str, Any]], Graph]) -> Graph:
    """dev with a webhook."""
    return variant("dev", {"guard": {"webhook": "dev-guard-webhook"}})


@pytest.fixture(scope="session")
def extras(variant: Callable[[str, Mapping[str, Any]], Graph]) -> Graph:
    """dev with everything that is there on request only: NAT, Slack, a CI repository, a node of the Cloud TPU API."""
    changes = {
        "network": {"nat": True},
        "slack_token": {"secure": "v1:c2VjcmV0:bm90LXJlYWw="},
        "alerts": {"slack_channel": "#ml-alerts"},
        "ci": {"repository": "acme/tpu-stacks"},
        "slices": {"trainer": {"backend": "tpu-vm", "max_run_hours": None}},
    }
    return variant("dev", changes)


@pytest.fixture(scope="session")
def node(variant: Callable[[str, Mapping[str, Any]], Graph]) -> Graph:
    """dev with a node of the Cloud TPU API, and no guard."""
    changes = {
        "guard": {"enabled": False, "apply": False},
        "slices": {"trainer": {"backend": "tpu-vm", "max_run_hours": None}},
    }
    return variant("dev", changes)
