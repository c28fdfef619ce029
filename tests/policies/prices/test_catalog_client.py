"""The real Cloud Billing client against a catalogue served on this machine: paging, retries, failures."""

import datetime
import socket
import subprocess
import sys
from decimal import Decimal

import grpc
import pytest

from policies.errors import InputError
from policies.prices.catalog_client import Access, CatalogError, read_catalogue
from policies.prices.sku import Pricing, Rate, Sku
from tests.google_cloud.billing_catalog import IDS, PAST, Catalogue, served, sku

COMPUTE = "Compute Engine"
TWELVE = [sku(f"A-{number}", f"SKU {number}", ["us-east5"], "h", "0.7") for number in range(12)]


def read(
    catalogue: Catalogue, *services: str, api_key: str | None = None, deadline_s: float = 5
) -> dict[str, list[Sku]]:
    said.clear()
    with served(catalogue) as endpoint:
        access = Access(endpoint=endpoint, api_key=api_key, first_wait_s=0.01, deadline_s=deadline_s)
        return {name: list(skus) for name, skus in read_catalogue(services or (COMPUTE,), access, said.append).items()}


said: list[str] = []


def test_all_that_we_use_of_a_sku_arrives() -> None:
    later = PAST + datetime.timedelta(microseconds=5)
    made = sku(
        "T-1", "Hyperdisk", ["us-east5", "us-central1"], "GiBy.mo", (0, "0"), (30, "12.000000001"), effective=later
    )
    assert read(Catalogue(skus={COMPUTE: [made]})) == {
        COMPUTE: [
            Sku(
                sku_id="T-1",
                description="Hyperdisk",
                family="Compute",
                group="TPU",
                usage_type="OnDemand",
                regions=("us-east5", "us-central1"),
                pricings=(
                    Pricing(
                        effective=later,
                        usage_unit="GiBy.mo",
                        rates=(
                            Rate(start=Decimal(0), price=Decimal(0), currency="USD"),
                            Rate(start=Decimal(30), price=Decimal("12.000000001"), currency="USD"),
                        ),
                    ),
                ),
            )
        ]
    }


def test_a_pricing_without_a_time_has_none() -> None:
    (found,) = read(Catalogue(skus={COMPUTE: [sku("T-1", "x", [], "h", "1", effective=None)]}))[COMPUTE]
    assert [pricing.effective for pricing in found.pricings] == [None]


def test_every_page_is_read_once_and_in_order() -> None:
    catalogue = Catalogue(skus={COMPUTE: TWELVE}, page_size=5)
    assert [found.sku_id for found in read(catalogue)[COMPUTE]] == [f"A-{number}" for number in range(12)]
    parent = IDS[COMPUTE]
    assert catalogue.calls == ["ListServices 0", *(f"ListSkus {parent} {start}" for start in (0, 5, 10))]
    assert set(catalogue.sizes) == {5000}
    assert said == [f"{COMPUTE}: {count} SKUs" for count in (5, 10, 12)]


def test_services_are_found_on_a_later_page() -> None:
    catalogue = Catalogue(skus={COMPUTE: TWELVE[:1], "Networking": TWELVE[1:2], "Cloud Storage": []}, page_size=1)
    found = read(catalogue, "Networking", "Cloud Storage")
    assert {name: [one.sku_id for one in skus] for name, skus in found.items()} == {
        "Networking": ["A-1"],
        "Cloud Storage": [],
    }


@pytest.mark.parametrize("status", [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE])
def test_a_catalogue_that_is_busy_is_asked_again(status: grpc.StatusCode) -> None:
    catalogue = Catalogue(skus={COMPUTE: TWELVE}, page_size=10, failures=[status, status])
    assert len(read(catalogue)[COMPUTE]) == 12
    assert len([call for call in catalogue.calls if call.startswith("ListSkus")]) == 4
    assert len([line for line in said if line.endswith("trying again")]) == 2


def test_a_busy_page_in_the_middle_is_asked_again_and_not_left_out() -> None:
    catalogue = Catalogue(skus={COMPUTE: TWELVE}, page_size=5)
    skus = catalogue.list_skus

    def busy_once(request: object, context: grpc.ServicerContext) -> object:
        if getattr(request, "page_token", "") == "5" and f"ListSkus {IDS[COMPUTE]} 5" not in catalogue.calls:
            catalogue.failures.append(grpc.StatusCode.RESOURCE_EXHAUSTED)
        return skus(request, context)

    catalogue.list_skus = busy_once  # type: ignore[method-assign]
    assert [found.sku_id for found in read(catalogue)[COMPUTE]] == [f"A-{number}" for number in range(12)]
    assert catalogue.calls.count(f"ListSkus {IDS[COMPUTE]} 5") == 2


def test_patience_ends() -> None:
    with pytest.raises(CatalogError, match=r"Cloud Billing Catalog failed: .*(quota|exhausted)") as caught:
        read(Catalogue(skus={COMPUTE: TWELVE}, failures=[grpc.StatusCode.RESOURCE_EXHAUSTED] * 999), deadline_s=0.2)
    assert "429" in str(caught.value)


@pytest.mark.parametrize(
    ("catalogue", "words"),
    [
        (Catalogue(skus={COMPUTE: TWELVE}, always=grpc.StatusCode.PERMISSION_DENIED), "does not have permission"),
        (Catalogue(skus={COMPUTE: TWELVE}, failures=[grpc.StatusCode.INTERNAL]), "500"),
        (Catalogue(skus={COMPUTE: TWELVE}, garbage=True), "Cloud Billing Catalog failed"),
        (Catalogue(skus={COMPUTE: TWELVE}, looping=True), "the same page again and again"),
        (
            Catalogue(skus={COMPUTE: TWELVE}, twins=True),
            "two services called Compute Engine: services/6F81-5844-456A and",
        ),
        (Catalogue(skus={"Networking": TWELVE}), "no service called Compute Engine among its 1"),
    ],
)
def test_a_catalogue_that_fails_is_an_error_with_its_reason(catalogue: Catalogue, words: str) -> None:
    with pytest.raises(CatalogError, match=words):
        read(catalogue)


def test_nobody_there() -> None:
    with served(Catalogue(skus={})) as endpoint:
        gone = endpoint
    with pytest.raises(CatalogError, match="Cloud Billing Catalog failed"):
        read_catalogue([COMPUTE], Access(endpoint=gone, first_wait_s=0.01, deadline_s=0.2), said.append)


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        access = Access(endpoint=f"127.0.0.1:{silent.getsockname()[1]}", first_wait_s=0.01, deadline_s=0.3)
        with pytest.raises(CatalogError, match="Cloud Billing Catalog failed"):
            read_catalogue([COMPUTE], access, said.append)


def test_the_key_goes_with_every_call() -> None:
    catalogue = Catalogue(skus={COMPUTE: TWELVE}, page_size=5)
    read(catalogue, api_key="made-up")
    assert catalogue.keys == ["made-up"] * 4
    read(catalogue)
    assert catalogue.keys[4:] == [None] * 4


@pytest.mark.parametrize("key", ["", "käse", "a\nb"])
def test_a_key_that_is_none_is_refused_and_never_shown(key: str) -> None:
    with pytest.raises(InputError, match="copy it again") as caught:
        Access(api_key=key)
    assert not key or key not in str(caught.value)
    assert "made-up" not in repr(Access(api_key="made-up"))


def test_without_credentials_it_says_how_to_get_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file.json")
    with pytest.raises(CatalogError, match=r"no credentials .*\n.*gcloud auth application-default login.*--api-key"):
        read_catalogue([COMPUTE], Access(), said.append)


@pytest.mark.parametrize("endpoint", ["127.0.0.1:8080", "localhost:1", "[::1]:65535"])
def test_a_server_on_this_machine_may_be_asked(endpoint: str) -> None:
    assert Access(endpoint=endpoint).endpoint == endpoint


@pytest.mark.parametrize(
    "endpoint",
    ["", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x", "10.0.0.1:80", "example.com:443", ":80"],
)
def test_no_other_server_is_asked_without_encryption(endpoint: str) -> None:
    with pytest.raises(InputError, match=r"--endpoint is .*this machine"):
        Access(endpoint=endpoint)


def test_where_the_client_is_not_installed_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['google.api_core'] = None\n"
        "from policies.prices.catalog_client import Access, read_catalogue\n"
        "try:\n    read_catalogue(['x'], Access(), print)\n"
        "except ValueError as error:\n    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "pip install 'spotrail[live]'" in ran.stdout
