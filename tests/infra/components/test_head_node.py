from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("stack_name", "machine", "boot"),
    [
        ("dev", "e2-standard-4", {"type": "pd-balanced", "size": 50}),
        ("staging", "e2-standard-4", {"type": "pd-balanced", "size": 50}),
        # N4 boots from Hyperdisk only; nothing beyond what the capacity includes.
        (
            "prod",
            "n4-standard-8",
            {"type": "hyperdisk-balanced", "size": 100, "provisionedIops": 3000, "provisionedThroughput": 140},
        ),
    ],
)
def test_the_head_boots_from_what_its_series_takes(
    request: pytest.FixtureRequest, stack_name: str, machine: str, boot: dict[str, object]
) -> None:
    head = request.getfixturevalue(stack_name).one("Instance", "head")
    assert head.inputs["machineType"] == machine
    params = head.value("bootDisk", "initializeParams")
    assert {key: value for key, value in params.items() if key not in ("image", "labels")} == boot
    assert head.value("bootDisk", "autoDelete") is True


def test_the_head_is_not_spot_and_comes_back(dev) -> None:
    assert dev.one("Instance", "head").inputs["scheduling"] == {
        "provisioningModel": "STANDARD",
        "automaticRestart": True,
        "onHostMaintenance": "MIGRATE",
    }


def test_its_address_is_fixed_and_internal(dev) -> None:
    address = dev.one("Address", "head")
    assert address.inputs["addressType"] == "INTERNAL"
    assert address.inputs["purpose"] == "GCE_ENDPOINT"
    # The last address of 10.64.0.0/22 that Google leaves free: .255 is broadcast, .254 is kept.
    assert address.inputs["address"] == "10.64.3.253"
    assert dev.sources(address, "subnetwork") == {"Subnetwork subnet-us-central1"}
    card = dev.one("Instance", "head").value("networkInterfaces", 0)
    assert card["networkIp"] == "10.64.3.253"
    assert "accessConfigs" not in card
    assert "Address head" in dev.sources(dev.one("Instance", "head"), "networkInterfaces")


def test_workers_are_told_that_address(dev) -> None:
    assert "10.64.3.253" in str(dev.one("Instance", "trainer").value("metadata", "startup-script"))


def test_the_head_is_shielded_and_can_be_deleted(dev) -> None:
    head = dev.one("Instance", "head")
    assert set(head.value("shieldedInstanceConfig").values()) == {True}
    assert head.inputs["deletionProtection"] is False
    assert head.inputs["allowStoppingForUpdate"] is True


def test_a_script_does_not_replace_the_head_and_a_replacement_frees_the_name_first(dev) -> None:
    head, address = dev.one("Instance", "head"), dev.one("Address", "head")
    assert "metadataStartupScript" not in head.inputs
    assert str(head.value("metadata", "startup-script")).startswith("#!/bin/bash")
    assert head.options.replace_on_changes == ()
    assert head.options.delete_before_replace
    assert address.options.delete_before_replace


def test_the_head_waits_for_its_roles_its_doors_and_its_packages(dev) -> None:
    needs = dev.needs(dev.component("HeadNode"))
    assert {
        "IAMMember head-logging.logWriter",
        "Firewall internal",
        "RepositoryIamMember head-reads-python-mirror",
    } <= needs


def test_the_stack_says_how_to_reach_it(dev) -> None:
    outputs = dev.preview.outputs
    assert outputs["head_address"] == "10.64.3.253"
    assert outputs["submit_address"] == "http://localhost:8265"
    assert outputs["tunnel_command"] == (
        "gcloud compute start-iap-tunnel dev-head 8265 --local-host-port=localhost:8265 "
        "--zone=us-central1-b --project=acme-tpu-dev"
    )


def test_the_head_can_stand_in_another_region(variant) -> None:
    graph = variant("dev", {"head": {"zone": "us-east1-d"}})
    head, address = graph.one("Instance", "head"), graph.one("Address", "head")
    assert head.inputs["zone"] == "us-east1-d"
    assert address.inputs["region"] == "us-east1"
    assert graph.sources(head, "networkInterfaces") >= {"Subnetwork subnet-us-east1"}
    assert address.inputs["address"] == "10.64.7.253"
