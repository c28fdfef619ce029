"""Priced things and free types: each type once, each module with a test of its own."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from policies.estimate import priced
from policies.estimate.free import free_type, free_types
from policies.estimate.market import HOURLY
from policies.estimate.registry import Priced, priced_types
from policies.prices.terms import UNITS

MODULES = [module.name for module in pkgutil.iter_modules(priced.__path__)]


@pytest.mark.parametrize("module", MODULES)
def test_every_priced_thing_has_a_test_of_its_own(module: str) -> None:
    assert (Path(__file__).parent / "priced" / f"test_{module}.py").is_file()


def test_every_module_is_found() -> None:
    assert len(MODULES) >= 11
    assert len({id(entry) for entry in priced_types().values()}) == len(MODULES)


def test_no_type_is_priced_and_free() -> None:
    assert [token for token in priced_types() if free_type(token)] == []


def test_a_type_that_is_claimed_twice_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (token, entry), *_ = priced_types().items()
    rival = ModuleType(f"{priced.__name__}.rival")
    rival.PRICED = Priced(types=(token,), price=entry.price)  # type: ignore[attr-defined]
    (tmp_path / "rival.py").touch()
    monkeypatch.setitem(sys.modules, rival.__name__, rival)
    monkeypatch.setattr(priced, "__path__", [*priced.__path__, str(tmp_path)])
    with pytest.raises(ValueError, match=f"{token} is priced twice; the second time by rival"):
        priced_types.__wrapped__()


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("gcp:compute/network:Network", "network"),
        ("gcp:storage/bucketIAMMember:BucketIAMMember", "IAM binding"),
        ("gcp:serviceaccount/iAMMember:IAMMember", "IAM binding"),
        ("gcp:artifactregistry/repositoryIamMember:RepositoryIamMember", "IAM binding"),
        ("gcp:projects/iAMCustomRole:IAMCustomRole", "custom role"),
        ("gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider", "identity pool"),
        ("random:index/randomPet:RandomPet", "random value"),
    ],
)
def test_free_types_by_name_and_by_pattern(token: str, kind: str) -> None:
    found = free_type(token)
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize("token", ["gcp:compute/networkIAMThing:NetworkIAMThing", "gcp:secretmanager/secret:Secret"])
def test_what_is_not_in_the_table_is_not_free(token: str) -> None:
    assert free_type(token) is None


def test_the_table_of_free_types_is_whole() -> None:
    patterns = [row.pattern for row in free_types()]
    assert len(set(patterns)) == len(patterns)
    assert all(row.kind and row.reason for row in free_types())


def test_units_of_the_hour_are_units_of_the_book() -> None:
    assert HOURLY < UNITS
    assert {unit for unit in UNITS if unit.endswith("hour")} == HOURLY
