"""Which runtime version brings v6e chips to life."""

import pytest

from policies.hardware.runtimes import V6E_RUNTIME, RuntimeStatus, judge_runtime


def test_the_runtime_of_v6e_is_right() -> None:
    assert judge_runtime("v2-alpha-tpuv6e").status is RuntimeStatus.OK


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tpu-ubuntu2204-base", "no driver binds"),
        ("v2-alpha-tpuv5-lite", "runtime of v5e"),
        ("v2-alpha-tpuv5", "runtime of v5p"),
        ("", "not set"),
        (None, "not set"),
        ("v2-alpha-tpuv6", "not known"),
        ("V2-ALPHA-TPUV6E", "not known"),
    ],
)
def test_a_wrong_runtime_names_the_right_one(name: str | None, why: str) -> None:
    verdict = judge_runtime(name)
    assert verdict.status is RuntimeStatus.WRONG
    assert why in verdict.reason
    assert verdict.reason.endswith(f"use {V6E_RUNTIME}")
    assert (name or "runtime version is not set") in verdict.reason


def test_a_tensorflow_runtime_is_a_warning() -> None:
    verdict = judge_runtime("tpu-vm-tf-2.16.1-pjrt")
    assert verdict.status is RuntimeStatus.WARNING
    assert "no JAX" in verdict.reason
    assert V6E_RUNTIME in verdict.reason
