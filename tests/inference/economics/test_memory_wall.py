"""The memory wall, against figures that are computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.economics.assumptions import USABLE
from inference.economics.decoding import Bound, Machine, step
from inference.economics.layers import Layer
from inference.economics.variants import Choices, Variant, break_even
from inference.memory_wall import Row, Wall, gains
from policies.errors import InputError
from policies.hardware.slices import shape

WallOf = Callable[..., Wall]

# A layer of the gated delta rule: 16 heads x 128 x 128 numbers in fp32, and the tails of the convolutions of queries,
# keys and values, 3 tokens x 3 x 2048 channels in bf16.
DELTA = 16 * 128 * 128 * 4 + 3 * 3 * 2048 * 2
# Keys and values of a layer: 2 x heads x 128 channels in bf16.
GQA = 2 * 4 * 128 * 2
MHA = 2 * 16 * 128 * 2
# Usable: 0.9 of 32 GB; weights: 1.3 G parameters in bf16.
ROOM = 28_800_000_000 - 2_600_000_000
BANDWIDTH = 1_640_000_000_000


def row(wall: Wall, key: str) -> Row:
    (found,) = (each for each in wall.rows if each.variant.key == key)
    return found


@pytest.mark.parametrize(
    ("key", "state", "token", "held_at_4k", "most"),
    [
        # 24 x 1,085,440 = 26.05 MB; 26.2e9 / 26,050,560 = 1005.7
        ("model", 24 * DELTA, 0, 26_050_560, (1005, 1005, 1005, 1005)),
        # 18 x 1,085,440 = 19.54 MB and 12 KiB a token: 26.2e9 / 69.87e6 = 374.98, / 422.2e6 = 62.06, / 1630e6 = 16.07,
        # / 12,904e6 = 2.03
        ("hybrid-3-1", 18 * DELTA, 6 * GQA, 69_869_568, (374, 62, 16, 2)),
        # 21 x 1,085,440 = 22.79 MB and 6 KiB: 546.3, 116.9, 31.6, 4.05
        ("hybrid-7-1", 21 * DELTA, 3 * GQA, 47_960_064, (546, 116, 31, 4)),
        # 48 KiB a token: 130.1, 16.3, 4.07, 0.51
        ("gqa", 0, 24 * GQA, 201_326_592, (130, 16, 4, 0)),
        # 192 KiB: 32.5, 4.07, 1.02, 0.13
        ("mha", 0, 24 * MHA, 805_306_368, (32, 4, 1, 0)),
        # 24 x (512 + 64) x 2 bytes = 27 KiB: 231.4, 28.9, 7.2, 0.9
        ("mla", 0, 24 * 576 * 2, 113_246_208, (231, 28, 7, 0)),
    ],
)
def test_what_is_held_and_how_much_fits(
    key: str, state: int, token: int, held_at_4k: int, most: tuple[int, ...], wall_of: WallOf
) -> None:
    found = row(wall_of(), key)
    assert (found.variant.state_bytes, found.variant.token_bytes) == (state, token)
    assert found.places[0].held_bytes == held_at_4k
    assert (
        tuple(place.most for place in found.places) == most == tuple(ROOM // place.held_bytes for place in found.places)
    )


@pytest.mark.parametrize(
    ("key", "batch", "context", "rate"),
    [
        # 1 / ((2.6e9 + 2 x 26.05e6) / 1.64e12), and 64 / ((2.6e9 + 64 x 52.1e6) / 1.64e12)
        ("model", 1, 4096, 618),
        ("model", 1, 1_048_576, 618),
        ("model", 64, 1_048_576, 17_686),
        ("model", 256, 131_072, 26_342),
        # 1 / ((2.6e9 + 201.3e6) / 1.64e12); then 1610.6e6, then 6442.5e6; 64 / ((2.6e9 + 64 x 201.3e6) / 1.64e12)
        ("gqa", 1, 4096, 585),
        ("gqa", 1, 32_768, 389),
        ("gqa", 1, 131_072, 181),
        ("gqa", 64, 4096, 6778),
    ],
)
def test_tokens_a_second(key: str, batch: int, context: int, rate: int, wall_of: WallOf) -> None:
    place = next(place for place in row(wall_of(), key).places if place.context == context)
    (found,) = (each for each in place.steps if each.batch == batch)
    assert int(found.tokens_per_second) == rate
    assert (found.fits, found.bound) == (True, Bound.BANDWIDTH)
    assert found.tokens_per_second == Fraction(BANDWIDTH * batch, found.bytes_moved)


@pytest.mark.parametrize(("key", "batch", "context"), [("gqa", 64, 32_768), ("gqa", 1, 1_048_576), ("mha", 64, 4096)])
def test_what_does_not_fit_is_said(key: str, batch: int, context: int, wall_of: WallOf) -> None:
    place = next(place for place in row(wall_of(), key).places if place.context == context)
    (found,) = (each for each in place.steps if each.batch == batch)
    assert not found.fits
    assert place.most < batch


@pytest.mark.parametrize(
    ("other", "memory", "traffic", "state"),
    [
        # 26,050,560 / 49,152 = 530.0 to the byte: 530 tokens hold the same, 531 more
        ("gqa", 531, 1061, 530),
        # / 196,608 = 132.5
        ("mha", 133, 266, 132),
        # / 27,648 = 942.2
        ("mla", 943, 1885, 942),
        # (24 - 18) x 1,085,440 / 12,288 = 530
        ("hybrid-3-1", 531, 1061, 2120),
    ],
)
def test_where_linear_attention_begins_to_hold_less(
    other: str, memory: int, traffic: int, state: int, wall_of: WallOf
) -> None:
    wall = wall_of()
    (found,) = (gain for gain in gains(wall.rows, wall.machine) if gain.other.key == other)
    assert (found.memory, found.traffic, found.state_tokens) == (memory, traffic, state)
    assert found.other.held(memory) > found.one.held(memory)
    assert found.other.held(memory - 1) <= found.one.held(memory - 1)


def test_the_state_of_a_hybrid_is_worth_fewer_tokens(wall_of: WallOf) -> None:
    wall = wall_of()
    # 19,537,920 and 22,794,240 by 49,152: 397.5 and 463.75
    worth = [
        row(wall, key).variant.state_bytes / row(wall, "gqa").variant.token_bytes
        for key in ("hybrid-3-1", "hybrid-7-1")
    ]
    assert worth == [397.5, 463.75]


def test_where_a_single_request_gains(wall_of: WallOf) -> None:
    wall = wall_of()
    (found,) = (gain for gain in gains(wall.rows, wall.machine) if gain.other.key == "gqa")
    # 2.6e9 + 49,152 n >= 1.1 x (2.6e9 + 52,101,120): n >= (0.26e9 + 57,311,232) / 49,152 = 6455.7
    assert found.speed == 6456


def test_where_reading_a_prompt_costs_as_much_as_the_weights(wall_of: WallOf) -> None:
    wall = wall_of()
    # P / (layers x d) = 1.3e9 / (24 x 2048) = 26,448.6
    assert [row(wall, key).variant.prefill_crossover for key in ("gqa", "mha", "model")] == [26_448, 26_448, None]
    # MLA makes keys of 128 + 64 channels and values of 128: 4 x 1.3e9 / (24 x 2 x 16 x 320)
    assert row(wall, "mla").variant.prefill_crossover == 21_158


def test_dollars_a_million_tokens(wall_of: WallOf) -> None:
    wall = wall_of()
    full = row(wall, "model").places[0].steps[1]
    # 2.70 / 3600 / 17,686.49 x 1e6 = 0.0424
    cost = wall.per_million(full.tokens_per_second, wall.prices.on_demand)
    assert cost is not None
    assert round(float(cost), 4) == 0.0424
    spot = wall.per_million(full.tokens_per_second, wall.prices.spot)
    assert spot == cost * Fraction(60, 270)


def test_the_memory_of_the_chips_adds_up(wall_of: WallOf) -> None:
    wall = wall_of(machine=Machine(shape=shape("v6e-8")))
    assert wall.machine.memory_bytes == 256_000_000_000
    for each in wall.rows:
        for place in each.places:
            for found in place.steps:
                held = found.state_bytes + found.cache_bytes
                assert held == found.batch * place.held_bytes
                assert each.variant.weights_bytes + held + found.free_bytes == Fraction(256_000_000_000 * 9, 10)


def test_many_requests_are_bound_by_operations(wall_of: WallOf) -> None:
    wall = wall_of("parameters: 1.3B\nd_model: 2048\nn_layers: 24\nmixers: [{type: mla, n_heads: 16}]\n", contexts=[64])
    found = step(wall.rows[0].variant, wall.machine, 8192, 64)
    # 2 x 1.3e9 and 24 x 2 x 16 x (2 x 512 + 64) x 64 = 53,477,376 operations a token, at 918e12 a second
    assert found.flops == 8192 * (2_600_000_000 + 53_477_376)
    assert found.bound is Bound.COMPUTE
    assert found.seconds == Fraction(found.flops, 918 * 10**12)
    assert found.intensity > 560


def test_a_state_is_read_and_written_and_keys_are_read(wall_of: WallOf) -> None:
    hybrid = row(wall_of(), "hybrid-3-1").variant
    assert hybrid.read(1000) == 2 * 18 * DELTA + 6 * GQA * 1000


def test_chips_share_the_work(wall_of: WallOf) -> None:
    one, eight = (row(wall_of(machine=Machine(shape=shape(name))), "gqa").places[0] for name in ("v6e-1", "v6e-8"))
    assert eight.steps[0].tokens_per_second == 8 * one.steps[0].tokens_per_second
    # 8 x 28.8e9 - 2.6e9 over 201,326,592
    assert eight.most == 1131


def test_prefixes_are_kept_by_the_hosts(wall_of: WallOf) -> None:
    # ct6e-standard-8t has 1,440 GiB, of which half is for prefixes
    place = row(wall_of(machine=Machine(shape=shape("v6e-8"))), "model").places[0]
    assert place.snapshots == 720 * 2**30 // 26_050_560


def test_weights_that_do_not_fit_leave_room_for_nothing(wall_of: WallOf) -> None:
    wall = wall_of("parameters: 70B\nd_model: 2048\nn_layers: 24\nmixers: [{type: ssd}]\n")
    assert {place.most for each in wall.rows for place in each.places} == {0}
    assert {place.full for each in wall.rows for place in each.places} == {None}


@pytest.mark.parametrize(
    ("mixers", "keys"),
    [
        ("[{type: delta, n_heads: 16}]", ["model", "hybrid-7-1", "hybrid-3-1", "mla", "gqa", "mha"]),
        (
            "[{type: softmax, n_heads: 16, n_kv_heads: 4}]",
            ["model", "linear", "hybrid-7-1", "hybrid-3-1", "mla", "mha"],
        ),
        ("[{type: softmax, n_heads: 16}]", ["model", "linear", "hybrid-7-1", "hybrid-3-1", "mla", "gqa"]),
        ("[{type: mla, n_heads: 16}]", ["model", "linear", "hybrid-7-1", "hybrid-3-1", "gqa", "mha"]),
        (
            "[{type: ssd}, {type: softmax, n_heads: 16}]",
            ["model", "linear", "hybrid-7-1", "hybrid-3-1", "mla", "gqa", "mha"],
        ),
    ],
)
def test_a_model_is_compared_with_what_it_is_not(mixers: str, keys: list[str], wall_of: WallOf) -> None:
    wall = wall_of(f"parameters: 1.3B\nd_model: 2048\nn_layers: 24\nmixers: {mixers}\n", contexts=[4096])
    assert [each.variant.key for each in wall.rows] == keys
    assert {each.variant.weights_bytes for each in wall.rows} == {2_600_000_000}


def test_the_compared_heads_can_be_chosen(wall_of: WallOf) -> None:
    wall = wall_of(choices=Choices(heads=32, kv_heads=8, mla_rank=256, mla_rope=32))
    assert [row(wall, key).variant.token_bytes for key in ("gqa", "mha", "mla")] == [98_304, 393_216, 24 * 288 * 2]
    with pytest.raises(InputError, match=r"--kv-heads 5: 16 heads of queries are no multiple of it"):
        wall_of(choices=Choices(kv_heads=5))


def test_what_was_measured_stands_beside_its_bound(wall_of: WallOf) -> None:
    wall = wall_of(measured=[(Decimal(8843), 64, 4096)])
    # 8843 of 17,686.49
    assert round(float(wall.measured[0].share), 3) == 0.5


def test_a_missing_price_takes_the_dollars_and_nothing_else(wall_of: WallOf) -> None:
    wall = wall_of(left_out=["tpu.v6e.chip"])
    assert [missing.item for missing in wall.missing] == ["tpu.v6e.chip"]
    assert wall.per_million(Fraction(1), wall.prices.chosen) is None
    assert row(wall, "gqa").places[0].most == 130


def test_less_usable_memory_holds_fewer(wall_of: WallOf) -> None:
    machine = Machine(shape=shape("v6e-1"), usable=USABLE.given(Decimal("0.5")))
    # 16e9 - 2.6e9 over 201,326,592
    assert row(wall_of(machine=machine), "gqa").places[0].most == 66
    assert [each.source for each in machine.assumptions if each.option == "--usable"] == ["given"]


layer = st.builds(
    Layer,
    title=st.just("x"),
    parameters=st.just(0),
    state_bytes=st.integers(0, 40),
    token_bytes=st.integers(0, 4),
    window=st.one_of(st.none(), st.integers(1, 12)),
)


@settings(max_examples=120)
@given(one=st.lists(layer, min_size=1, max_size=3), other=st.lists(layer, min_size=1, max_size=3))
def test_break_even_is_the_last_change_of_places(one: list[Layer], other: list[Layer]) -> None:
    empty = Variant(key="", title="", layers=(), parameters=1, active_parameters=1, weights_bytes=1, active_bytes=1)
    a, b = replace(empty, layers=tuple(one)), replace(empty, layers=tuple(other))
    # States of 120 bytes at most and growth by whole bytes: whatever comes last has come by then.
    behind = [context for context in range(1, 400) if a.held(context) >= b.held(context)]
    expected = None if behind and behind[-1] == 399 else behind[-1] + 1 if behind else 1
    assert break_even(a, b) == expected
