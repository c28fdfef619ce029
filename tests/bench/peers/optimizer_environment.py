"""An environment for the optimizers of others: `python -m tests.bench.peers.optimizer_environment DIR --python PYTHON`.

It holds distributed-kron, psgd-jax and psgdax, pinned, with a jax that our own optimizers run on too. As they are
published the first two do not import there; after the installation:

- distributed-kron subscripts PartitionSpec in an annotation, which jax no longer allows: the brackets go
- distributed-kron and psgd-jax need flax and do not say so: it is named here
- psgd-jax needs a private name of optax that left with 0.2.7: optax is pinned below

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
    "optax==0.2.6",
    "jaxtyping>=0.3.2",
)
SUBSCRIPT: Final = "PartitionSpec[str, str]"


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
    """Take out the subscript of the annotation that keeps distributed-kron from being imported."""
    source = packages / "distributed_kron" / "kron.py"
    text = source.read_text()
    if SUBSCRIPT not in text:
        raise SystemExit(f"{source} no longer has {SUBSCRIPT}: is it another version than {PACKAGES[0]}?")
    source.write_text(text.replace(SUBSCRIPT, "PartitionSpec"))


if __name__ == "__main__":
    main()
