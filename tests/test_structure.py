"""The structure of the house, proven from outside: who may load what, and that we test our own checkout."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("infra", "policies", "training", "inference", "scripts")
HEAVY = ("jax", "numpy", "equinox", "optax", "ray", "torch")
PROBE = """
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
loaded = sorted({{name.partition(".")[0] for name in sys.modules}} & set({forbidden!r}))
print(",".join(loaded))
"""


def loaded_by(modules: list[str], forbidden: tuple[str, ...]) -> str:
    """Import `modules` in a fresh interpreter; the comma-separated ones of `forbidden` that came along."""
    code = PROBE.format(modules=modules, forbidden=forbidden)
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True, timeout=120
    )
    return run.stdout.strip()


def modules_under(package: str) -> list[str]:
    """Every importable module of a package, entry points left out (they act when they are imported)."""
    found = import_module(package)
    names = [package, *(info.name for info in pkgutil.walk_packages(found.__path__, f"{package}."))]
    return [name for name in names if not name.endswith("__main__")]


@pytest.mark.parametrize("room", ["infra", "policies", "scripts"])
def test_the_light_half_loads_without_the_heavy_half(room: str) -> None:
    assert loaded_by(modules_under(room), HEAVY) == ""


def test_the_money_half_loads_without_pulumi() -> None:
    modules = [name for name in modules_under("policies") if name != "policies.pack"]
    assert len(modules) > 10
    assert loaded_by(modules, ("pulumi", "pulumi_gcp", "pulumi_policy", "grpc")) == ""


def test_plans_load_without_pulumi() -> None:
    assert loaded_by(modules_under("infra.plan"), ("pulumi", "pulumi_gcp")) == ""


def test_the_probe_can_fail() -> None:
    assert loaded_by(["policies.pack"], ("pulumi_policy", "jax")) == "pulumi_policy"


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_is_the_one_of_this_checkout(room: str) -> None:
    found = import_module(room).__file__
    assert found is not None
    assert Path(found).is_relative_to(ROOT)


@pytest.mark.parametrize("room", ["infra", "policies"])
def test_no_module_that_pulumi_puts_first_shadows_the_standard_library(room: str) -> None:
    names = {path.stem for path in (ROOT / room).iterdir() if path.suffix == ".py" or path.is_dir()}
    assert names & (sys.stdlib_module_names - {"__main__"}) == set()


def test_tests_are_not_packages() -> None:
    assert [str(path) for path in (ROOT / "tests").rglob("__init__.py")] == []


def test_roles_are_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["optional-dependencies"]) == {"live", "cluster", "train", "serve"}
