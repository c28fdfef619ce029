"""For every test of training: eight CPU devices, and annotations of shapes that are held.

Both must stand before anything imports jax or training.
"""

from __future__ import annotations

import os

from jaxtyping import install_import_hook

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
install_import_hook(["training.mixers", "training.model", "training.optim"], "beartype.beartype")
