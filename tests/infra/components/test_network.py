from __future__ import annotations

import ipaddress

import pytest

from policies.resources import UNKNOWN


def test_the_network_is_made_for_gradients_and_has_no_subnetwork_by_itself(dev) -> None:
    vpc = dev.one("Network", "vpc")
    assert vpc.inputs["mtu"] == 8896
    assert vpc.inputs["autoCreateSubnetworks"] is False
    assert vpc.inputs["name"] == "dev-vpc"


def test_one_subnetwork_a_region_reaches_google_without_an_external_address(two_zones) -> None:
    found = {one.inputs["region"]: one.inputs["ipCidrRange"] for one in two_zones.of("Subnetwork")}
    assert found == {"us-central1": "10.64.0.0/22", "us-east5": "10.64.4.0/22"}
    assert {one.inputs["privateIpGoogleAccess"] for one in two_zones.of("Subnetwork")} == {True}
    assert {one.inputs["name"] for one in two_zones.of("Subnetwork")} == {
        "dev-subnet-us-central1",
        "dev-subnet-us-east5",
    }


def test_a_second_region_leaves_the_first_where_it_was(dev, two_zones) -> None:
    one_region = dev.one("Subnetwork")
    assert one_region.inputs == two_zones.one("Subnetwork", one_region.name).inputs


def test_people_come_in_through_the_proxy_only(dev) -> None:
    door = dev.one("Firewall", "iap")
    assert door.inputs["sourceRanges"] == ("35.235.240.0/20",)
    assert door.inputs["allows"] == ({"protocol": "tcp", "ports": ("22", "8265")},)
    assert dev.sources(door, "targetServiceAccounts") == {"Account head", "Account worker", "Account server"}


def test_machines_reach_each_other_by_account(dev) -> None:
    door = dev.one("Firewall", "internal")
    machines = {"Account head", "Account worker", "Account server"}
    assert dev.sources(door, "sourceServiceAccounts") == machines
    assert dev.sources(door, "targetServiceAccounts") == machines
    assert {rule["protocol"] for rule in door.items("allows")} == {"tcp", "udp", "icmp"}


@pytest.mark.parametrize("name", ["dev", "staging", "prod", "two_zones", "zoo", "extras"])
def test_no_rule_lets_the_internet_in(request: pytest.FixtureRequest, name: str) -> None:
    graph = request.getfixturevalue(name)
    for door in graph.of("Firewall"):
        ranges = [ipaddress.ip_network(text) for text in door.items("sourceRanges")]
        assert all(found.prefixlen >= 20 for found in ranges), door.urn
        assert ranges or door.items("sourceServiceAccounts") or door.items("sourceTags"), door.urn


def test_tags_open_the_door_only_for_nodes_of_the_tpu_api(dev, extras) -> None:
    assert {one.name for one in dev.of("Firewall")} == {"iap", "internal"}
    by_tag = {one.name: one for one in extras.of("Firewall") if one.name.endswith("-by-tag")}
    assert by_tag["internal-by-tag"].inputs["sourceTags"] == ("spotrail-host",)
    assert by_tag["iap-by-tag"].inputs["allows"] == extras.one("Firewall", "iap").inputs["allows"]
    tagged = {one.name for one in (*extras.of("Instance"), *extras.of("V2Vm")) if one.inputs["tags"]}
    assert tagged == {"head", "trainer"}


def test_nat_is_there_only_where_it_is_asked_for(dev, extras) -> None:
    assert (dev.of("Router"), dev.of("RouterNat")) == ((), ())
    gateway = extras.one("RouterNat", "nat-us-central1")
    assert gateway.inputs["natIpAllocateOption"] == "AUTO_ONLY"
    assert extras.sources(gateway, "router") == {"Router router-us-central1"}


def test_the_component_holds_its_children_and_says_what_it_made(dev) -> None:
    component = dev.component("Network")
    children = {one.name for one in dev.preview.resources.children(component.urn)}
    assert children == {"vpc", "subnet-us-central1", "iap", "internal"}
    assert component.outputs == {"network": UNKNOWN, "subnetworks": {"us-central1": UNKNOWN}}
