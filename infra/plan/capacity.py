"""The closed sets of a slice: which API makes it, what kind of capacity it asks for, and what it is there for."""

from __future__ import annotations

import enum
from typing import final


@final
class Backend(enum.Enum):
    """The API that makes a slice."""

    GCE = "gce"
    """Compute Engine, which Google recommends for v6e: one instance, or a managed group with a workload policy."""
    TPU_VM = "tpu-vm"
    """The Cloud TPU API, in maintenance since 2026: one `tpu.V2Vm` a slice."""


@final
class Capacity(enum.Enum):
    """What kind of capacity a slice asks for. One word, so that two of them cannot contradict each other."""

    SPOT = "spot"
    """Cheap and taken away at thirty seconds' notice."""
    ON_DEMAND = "on-demand"
    """Full price."""
    RESERVED = "reserved"
    """From a reservation or commitment that exists already."""


@final
class Role(enum.Enum):
    """What a slice is there for."""

    TRAIN = "train"
    """It joins the Ray cluster and waits for jobs."""
    SERVE = "serve"
    """It runs the serving image and reads the model volume."""
