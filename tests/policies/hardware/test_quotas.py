"""Quotas: one pool for each question, and no invented default."""

import pytest

from policies.hardware.errors import HardwareError
from policies.hardware.quotas import quota, quotas


def test_the_pools_of_the_two_backends_are_different() -> None:
    gce = quota("tpu-v6e-chips", "gce", "spot")
    api = quota("tpu-v6e-chips", "tpu-vm", "spot")
    assert (gce.name, gce.default, gce.scope) == ("PREEMPTIBLE-TPU-V6E-per-project-zone", 0, "zone")
    assert (api.name, api.default, api.scope) == ("TPUV6EPreemptiblePerProjectPerZoneForTPUAPI", 64, "zone")
    assert quota("tpu-v6e-chips", "gce", "on-demand").scope == "region"


def test_an_unknown_default_is_none() -> None:
    assert quota("hyperdisk-ml-throughput").default is None


def test_a_question_with_two_answers_is_refused() -> None:
    with pytest.raises(HardwareError, match='no single quota for "tpu-v6e-chips gce"'):
        quota("tpu-v6e-chips", "gce")


def test_an_unknown_resource_is_told_the_near_one() -> None:
    with pytest.raises(HardwareError, match=r"Did you mean external-addresses\?"):
        quota("external-adresses")


def test_backend_does_not_matter_where_there_is_one_pool() -> None:
    assert quota("external-addresses", "gce", "spot") is quota("external-addresses")


def test_names_are_unique() -> None:
    assert len({one.name for one in quotas()}) == len(quotas())
