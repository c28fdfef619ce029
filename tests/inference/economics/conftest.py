"""The model of the worked example: 1.3B parameters in 24 layers of width 2048, the gated delta rule in every one."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from inference.economics.decoding import Machine
from inference.economics.fleet import Fleet
from inference.economics.model_sizes import Sizes, read_sizes
from inference.economics.variants import Choices
from inference.memory_wall import Wall, memory_wall
from inference.weights_plan import Plan, weights_plan
from policies.hardware.slices import shape
from policies.prices.book import PriceBook, PriceModel, load_book

AS_OF = datetime.date(2026, 11, 29)
EXAMPLE = "name: 1.3B\nparameters: 1.3B\nd_model: 2048\nn_layers: 24\nmixers: [{type: delta, n_heads: 16}]\n"
HEAD = "item,price_model,location,pricing_unit,from_quantity,list_unit_price,currency,as_of,sku_id,confidence,source\n"
ROWS = (
    ("tpu.v6e.chip", "on-demand", "us-central1-b", "chip-hour", "2.70"),
    ("tpu.v6e.chip", "spot", "us-central1-b", "chip-hour", "0.60"),
    ("disk.hyperdisk-ml.capacity", "on-demand", "us-central1", "GiB-month", "0.08"),
    ("disk.hyperdisk-ml.throughput", "on-demand", "us-central1", "MiB/s-month", "0.12"),
    ("snapshot.standard.capacity", "on-demand", "us-central1", "GiB-month", "0.05"),
    ("storage.standard.capacity", "on-demand", "us-central1", "GiB-month", "0.02"),
    ("storage.standard.capacity", "on-demand", "us-east1", "GiB-month", "0.02"),
    ("storage.standard.class-a", "on-demand", "global", "1000-operations", "0.005"),
    ("storage.standard.class-b", "on-demand", "global", "1000-operations", "0.0004"),
    ("transfer.north-america.north-america", "on-demand", "global", "GiB", "0.02"),
)


@pytest.fixture
def book_without(tmp_path: Path) -> Callable[..., PriceBook]:
    """A book with round prices of the day, but for the items that are named."""

    def made(*left_out: str) -> PriceBook:
        path = tmp_path / "book.csv"
        lines = [
            f"{a},{b},{c},{d},0,{e},USD,{AS_OF},,synthetic,a test\n" for a, b, c, d, e in ROWS if a not in left_out
        ]
        path.write_text(HEAD + "".join(lines), encoding="utf-8")
        return load_book(path)

    return made


@pytest.fixture
def sizes_of(tmp_path: Path) -> Callable[[str], Sizes]:
    """The sizes that a text says."""

    def made(text: str = EXAMPLE) -> Sizes:
        path = tmp_path / "model.yaml"
        path.write_text(text, encoding="utf-8")
        return read_sizes(path)

    return made


@pytest.fixture
def wall_of(sizes_of: Callable[[str], Sizes], book_without: Callable[..., PriceBook]) -> Callable[..., Wall]:
    """The wall of a model on one chip, on demand, unless it is said otherwise."""

    def made(
        text: str = EXAMPLE,
        *,
        contexts: Sequence[int] = (4096, 32_768, 131_072, 1_048_576),
        batches: Sequence[int] = (1, 64, 256),
        machine: Machine | None = None,
        choices: Choices | None = None,
        left_out: Sequence[str] = (),
        measured: Sequence[tuple[Decimal, int, int]] = (),
    ) -> Wall:
        return memory_wall(
            sizes_of(text),
            machine or Machine(shape=shape("v6e-1")),
            contexts,
            batches,
            choices=choices or Choices(),
            book=book_without(*left_out),
            zone="us-central1-b",
            capacity=PriceModel.ON_DEMAND,
            as_of=AS_OF,
            measured=measured,
        )

    return made


@pytest.fixture
def plan_of(book_without: Callable[..., PriceBook]) -> Callable[..., Plan]:
    """The plan of 16 replicas v6e-8 of 120 GiB, each started 8 times a day and one at a time."""

    def made(*, left_out: Sequence[str] = (), **changes: Any) -> Plan:
        fields: dict[str, Any] = {
            "size_bytes": 120 * 2**30,
            "replicas": 16,
            "shape": shape("v6e-8"),
            "zone": "us-central1-b",
            "capacity": PriceModel.SPOT,
            "restarts_per_day": Fraction(8),
            "hosts": 1,
            "at_once": 1,
            "bucket": "us-central1",
        }
        return weights_plan(Fleet(**{**fields, **changes}), book_without(*left_out), AS_OF)

    return made
