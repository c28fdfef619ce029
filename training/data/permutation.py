"""A keyed permutation of 0..n-1 that is never written down: any position alone, in constant time and no memory.

A Feistel network over the smallest grid `a x b` (a about b) that holds n: the halves of a number are mixed in turn by a
round function that is not affine, and a number that falls outside n walks on along its cycle, which happens to about
one in sqrt(n). n up to 2^62.
"""

from __future__ import annotations

import hashlib
import math
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]
ROUNDS: Final = 6
MOST: Final = 1 << 62
"""Items that a permutation can have, and rows that a counter counts."""
_STIR: Final = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
"""Multipliers of MurmurHash3's 64-bit finalizer."""
_SHIFT: Final = np.uint64(33)


def epoch_key(seed: int, source: str, epoch: int) -> bytes:
    """The key of one pass over one source; other seeds, sources and epochs have unrelated keys."""
    return hashlib.sha256(f"{seed}/{source}/{epoch}".encode()).digest()


def permute(positions: Numbers, n: int, key: bytes) -> Numbers:
    """What stands at each of `positions` (in 0..n-1) in the permutation of 0..n-1 that belongs to `key`."""
    if not 1 <= n <= MOST:
        raise ValueError(f"a permutation has 1 to 2^62 items, not {n}")
    rows = math.isqrt(n - 1) + 1
    columns = -(-n // rows)
    keys = _round_keys(key)
    found = _network(positions.astype(np.uint64), rows, columns, keys)
    while (outside := found >= n).any():
        found[outside] = _network(found[outside], rows, columns, keys)
    return found.astype(np.int64)


def _network(
    numbers: npt.NDArray[np.uint64], rows: int, columns: int, keys: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """One way through the rounds: a bijection of 0..rows*columns-1."""
    height, width = np.uint64(rows), np.uint64(columns)
    row, column = np.divmod(numbers, width)
    for index in range(0, ROUNDS, 2):
        row = (row + _stirred(column, keys[index])) % height
        column = (column + _stirred(row, keys[index + 1])) % width
    return row * width + column


def _stirred(half: npt.NDArray[np.uint64], key: np.uint64) -> npt.NDArray[np.uint64]:
    """Half a number through a keyed mixer of 64 bits: below 2^62, so that a half can be added without overflow."""
    mixed = (half ^ key) * _STIR[0]
    mixed ^= mixed >> _SHIFT
    mixed *= _STIR[1]
    mixed ^= mixed >> _SHIFT
    return mixed >> np.uint64(2)


def _round_keys(key: bytes) -> npt.NDArray[np.uint64]:
    return np.frombuffer(hashlib.blake2b(key, digest_size=8 * ROUNDS).digest(), dtype="<u8")
