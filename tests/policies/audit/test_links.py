"""Names of resources in every form that the APIs use."""

from __future__ import annotations

import pytest

from policies.audit.links import last, location_of, project_of, relative

DISK = "projects/p1/zones/us-central1-b/disks/llama"


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        (f"https://www.googleapis.com/compute/v1/{DISK}", DISK),
        (f"https://compute.googleapis.com/compute/beta/{DISK}", DISK),
        (f"http://127.0.0.1:8080/compute/v1/{DISK}", DISK),
        (f"//compute.googleapis.com/{DISK}", DISK),
        (DISK, DISK),
        (f"{DISK}/", DISK),
        ("zones/us-central1-b/disks/llama", DISK),
        ("global/snapshots/s", "projects/p1/global/snapshots/s"),
        ("llama", "llama"),
        ("", ""),
        ("https://[broken/compute/v1/projects/p/zones/z/disks/d", "projects/p/zones/z/disks/d"),
        ("https://host", ""),
        ("projects/projects/zones/z/disks/d", "projects/projects/zones/z/disks/d"),
        ("https://x/compute/v1/projects/example.com:p/regions/r/disks/d", "projects/example.com:p/regions/r/disks/d"),
        ("projects/p1/locations/us-east5-b/nodes/n", "projects/p1/locations/us-east5-b/nodes/n"),
        ("https://www.googleapis.com/storage/v1/b/models", "b/models"),
    ],
)
def test_one_form_for_every_link(link: str, expected: str) -> None:
    assert relative(link, "p1") == expected


def test_without_a_project_none_is_invented() -> None:
    assert relative("zones/z/disks/d") == "zones/z/disks/d"


@pytest.mark.parametrize(
    ("link", "location", "name", "project"),
    [
        (f"https://www.googleapis.com/compute/v1/{DISK}", "us-central1-b", "llama", "p1"),
        ("projects/p/regions/us-central1/disks/r", "us-central1", "r", "p"),
        ("projects/p/locations/us-east5-b/nodes/n", "us-east5-b", "n", "p"),
        ("projects/p/global/snapshots/s", "global", "s", "p"),
        ("https://www.googleapis.com/compute/v1/projects/p/zones/us-east1-d", "us-east1-d", "us-east1-d", "p"),
        ("vm-1", "", "vm-1", ""),
        ("projects", "", "projects", ""),
    ],
)
def test_what_a_link_says(link: str, location: str, name: str, project: str) -> None:
    assert (location_of(link), last(link), project_of(link)) == (location, name, project)
