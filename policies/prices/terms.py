"""The closed sets of a price book: models, confidences, units, columns."""

from __future__ import annotations

import enum
from typing import Final, final

from policies.errors import InputError

COLUMNS: Final = (
    "item",
    "price_model",
    "location",
    "pricing_unit",
    "from_quantity",
    "list_unit_price",
    "currency",
    "as_of",
    "sku_id",
    "confidence",
    "source",
)
"""What the first line of a book names, each once, in any order."""

UNITS: Final = frozenset(
    {
        "1000-objects-month",
        "1000-operations",
        "GB-month",
        "GHz-second",
        "GiB",
        "GiB-hour",
        "GiB-month",
        "GiB-second",
        "IOPS-month",
        "IP-hour",
        "MiB/s-month",
        "TiB",
        "VM-hour",
        "chip-hour",
        "condition-month",
        "hour",
        "job-month",
        "million",
        "vCPU-hour",
        "vCPU-second",
        "version-month",
    }
)
"""Every unit that a price is for. GiB, MiB/s and TiB are binary; only artifact storage is billed in decimal GB."""


@final
class BookError(InputError):
    """A price book that cannot be trusted: file, line, column, value and rule."""


@final
class PriceModel(enum.Enum):
    """How a thing is bought."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    """Cheaper and taken back without much notice; its price moves too."""
    CUD_1Y = "cud-1y"
    """Committed use for one year."""
    CUD_3Y = "cud-3y"
    """Committed use for three years."""


@final
class Confidence(enum.Enum):
    """How far the figure itself can be trusted, its age apart."""

    HIGH = "high"
    """Read on a price page, taken from the catalogue, or transcribed alike by several."""
    MEDIUM = "medium"
    """One transcription, or a price that moves."""
    LOW = "low"
    """Contradicted or unconfirmed; the source says by what."""
    SYNTHETIC = "synthetic"
    """Made up for a test. Never in a book that is shipped."""
