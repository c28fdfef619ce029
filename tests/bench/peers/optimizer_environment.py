"""An environment for the optimizers of others: `python -m tests.bench.peers.optimizer_environment DIR --python PYTHON`.

It holds distributed-kron, psgd-jax and psgdax, pinned, with the jax and optax that our own optimizers run on too. As
they are published the first two do not import there; after the installation:

- distributed-kron subscripts PartitionSpec in an annotation, which jax no longer allows: the brackets go
- psgd-jax takes `clipping` from the private half of optax, where it no longer is: the public half has the same names
- both need flax and do not say so: it is named here

Prints the path of the environment's interpreter, for `--peer-python` of the benchmarks.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path
from typing import Final

PACKAGES: Final = (
    "distributed-kron==2.0.0",
    "psgd-jax==0.2.9",
    "psgdax==0.1.1",
    "flax==0.12.8",
    "jax==0.10.2",
    "optax==0.2.8",
    "jaxtyping>=0.3.2",
)
PUBLIC_CLIPPING: Final = "import optax as clipping\nfrom optax._src import base, transform"
REPAIRS: Final = {
    "distributed_kron/kron.py": ("PartitionSpec[str, str]", "PartitionSpec"),
    "psgd_jax/affine.py": ("from optax._src import base, transform, clipping", PUBLIC_CLIPPING),
    "psgd_jax/kron.py": ("from optax._src import base, transform, clipping, numerics", f"{PUBLIC_CLIPPING}, numerics"),
    "psgd_jax/low_rank_approximation.py": ("from optax._src import base, transform, clipping", PUBLIC_CLIPPING),
    "psgd_jax/xmat.py": ("from optax._src import base, transform, clipping", PUBLIC_CLIPPING),
}
"""What stands in a file, and what it becomes."""


def main() -> None:
    """Make it, and print its interpreter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the environment is made")
    parser.add_argument("--python", default="python3", help="the interpreter it is made from, 3.11 or later")
    options = parser.parse_args()
    subprocess.run([options.python, "-m", "venv", str(options.folder)], check=True)
    python = options.folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    repair(next(options.folder.glob("lib/python*/site-packages")))
    print(python.absolute())


def repair(packages: Path) -> None:
    """Make them importable."""
    for name, (before, after) in REPAIRS.items():
        text = (packages / name).read_text()
        if before not in text:
            raise SystemExit(f"{name} does not have {before!r}: is it another version than that of {PACKAGES}?")
        (packages / name).write_text(text.replace(before, after))


if __name__ == "__main__":
    main()
