"""For every test: what the machine, the shell and the runner would bring along is taken away.

And, before anything imports jax or training: eight CPU devices, and annotations of shapes that are held.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings
from jaxtyping import install_import_hook

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
install_import_hook(["training.mixers", "training.model", "training.optim"], "beartype.beartype")

settings.register_profile("spotrail", deadline=None)  # a busy machine takes its time over one example
settings.load_profile("spotrail")


def pytest_configure() -> None:
    """Give every test, and what it starts, the same width and the same signals."""
    # The workers of xdist inherit a width of 80 from readline, which their parent has loaded.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    # A shell starts what it puts into the background deaf to Ctrl-C, and every process of ours would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
