"""What the engine answers in Google's place, and what it leaves to Google."""

from __future__ import annotations

import pytest

from infra.engine.errors import EngineRefusal
from infra.engine.invokes import answer_invoke
from infra.engine.wire import Wire, decode
from policies.resources import SECRET, UNKNOWN, Value

CONFIG: dict[str, Wire] = {"project": "acme", "zone": "us-east5-b", "version": "10.2.0"}


@pytest.mark.parametrize(
    ("token", "arguments", "known"),
    [
        (
            "gcp:tpu/getV2AcceleratorTypes:getV2AcceleratorTypes",
            {},
            {"zone": "us-east5-b", "project": "acme", "id": "acme/us-east5-b"},
        ),
        ("gcp:tpu/getV2RuntimeVersions:getV2RuntimeVersions", {"zone": "us-east1-d"}, {"zone": "us-east1-d"}),
        ("gcp:organizations/getProject:getProject", {}, {"projectId": "acme", "number": UNKNOWN, "name": UNKNOWN}),
        ("gcp:organizations/getProject:getProject", {"projectId": "other"}, {"projectId": "other"}),
        (
            "gcp:organizations/getClientConfig:getClientConfig",
            {},
            {"project": "acme", "zone": "us-east5-b", "region": "us-east5", "accessToken": SECRET},
        ),
        (
            "gcp:compute/getImage:getImage",
            {"family": "debian-12", "project": "debian-cloud", "name": None},
            {
                "selfLink": "https://www.googleapis.com/compute/v1/projects/debian-cloud/global/images/family/debian-12",
                "family": "debian-12",
                "name": UNKNOWN,
                "imageId": UNKNOWN,
            },
        ),
        (
            "gcp:compute/getImage:getImage",
            {"name": "mine"},
            {"selfLink": "https://www.googleapis.com/compute/v1/projects/acme/global/images/mine", "family": UNKNOWN},
        ),
    ],
)
def test_an_answer(token: str, arguments: dict[str, Wire], known: dict[str, Value]) -> None:
    found = {key: decode(value) for key, value in answer_invoke(token, arguments, CONFIG).items()}
    assert {key: found[key] for key in known} == known


def test_the_tables_are_the_source() -> None:
    types = answer_invoke("gcp:tpu/getV2AcceleratorTypes:getV2AcceleratorTypes", {}, CONFIG)["types"]
    versions = answer_invoke("gcp:tpu/getV2RuntimeVersions:getV2RuntimeVersions", {}, CONFIG)["versions"]
    assert isinstance(types, list)
    assert isinstance(versions, list)
    assert types == ["v6e-1", "v6e-4", "v6e-8", "v6e-16", "v6e-32", "v6e-64", "v6e-128", "v6e-256"]
    assert "v2-alpha-tpuv6e" in versions
    assert not any("*" in str(version) for version in versions)


@pytest.mark.parametrize(
    ("token", "arguments", "config", "message"),
    [
        ("gcp:compute/getZones:getZones", {}, CONFIG, r"^gcp:compute/getZones:getZones: a function that only Google"),
        ("gcp:storage/getBucket:getBucket", {}, CONFIG, r"Take the value from the stack's configuration instead\.$"),
        ("gcp:compute/getImages:getImages", {}, CONFIG, r"Did you mean gcp:compute/getImage:getImage\?$"),
        (
            "gcp:organizations/getProject:getProject",
            {},
            {},
            r"getProject: projectId is not set; set it, or gcp:project",
        ),
        ("gcp:compute/getImage:getImage", {}, CONFIG, r"getImage: neither name nor family of the image is set"),
        ("gcp:tpu/getV2RuntimeVersions:getV2RuntimeVersions", {}, {}, r"zone is not set; set it, or gcp:zone"),
        (
            "gcp:tpu/getV2AcceleratorTypes:getV2AcceleratorTypes",
            {"zone": "us-central1-a"},
            CONFIG,
            r"v6e is not listed in us-central1-a",
        ),
    ],
)
def test_a_refusal(token: str, arguments: dict[str, Wire], config: dict[str, Wire], message: str) -> None:
    with pytest.raises(EngineRefusal, match=message):
        answer_invoke(token, arguments, config)
