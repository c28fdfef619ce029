"""What a prefix is known by: a chain of digests, one at every place of the grid, each over all the tokens before it.

Two prompts share the digest of a place only where they share every token up to it, and the salt: the weights and what
else a state depends on, the tenant, and the salt of the request. Digests are of 256 bits, so that nobody finds a prompt
that is taken for another's.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

_DIGEST_BYTES: Final = 32


@final
@dataclass(frozen=True, kw_only=True)
class HashChain:
    """The places of one prompt."""

    grid: int
    """Tokens between two places."""
    length: int
    """Tokens of the prompt."""
    digests: tuple[bytes, ...]
    """Of the first grid, 2 grid, ... tokens, as far as the prompt goes."""
    turn_ends: tuple[int, ...] = ()
    """The ends of its turns, in tokens."""

    @property
    def usable(self) -> int:
        """How many places lie before the last token: a state must leave that one to be read."""
        return max(self.length - 1, 0) // self.grid

    def digest(self, position: int) -> bytes:
        """Of the first `position` tokens. Raises ValueError where that is no place of the chain."""
        place, off = divmod(position, self.grid)
        if off or not 1 <= place <= len(self.digests):
            raise ValueError(f"position {position}: is no place of {len(self.digests)} on a grid of {self.grid}")
        return self.digests[place - 1]


def hash_chain(prompt: Sequence[int], *, grid: int, salt: Sequence[str], turn_ends: Sequence[int] = ()) -> HashChain:
    """The chain of `prompt`, whose ids are below 2^32. No two lists of strings are the same salt."""
    block = struct.Struct(f"<{grid}I")
    digest = _root(salt, grid)
    digests = []
    for start in range(0, len(prompt) - grid + 1, grid):
        content = block.pack(*prompt[start : start + grid])
        digest = hashlib.blake2b(digest + content, digest_size=_DIGEST_BYTES).digest()
        digests.append(digest)
    return HashChain(grid=grid, length=len(prompt), digests=tuple(digests), turn_ends=tuple(turn_ends))


def _root(salt: Sequence[str], grid: int) -> bytes:
    root = hashlib.blake2b(struct.pack("<QQ", grid, len(salt)), digest_size=_DIGEST_BYTES)
    for part in salt:
        # Strings from a request may hold lone surrogates.
        content = part.encode("utf-8", "surrogatepass")
        root.update(struct.pack("<Q", len(content)) + content)
    return root.digest()
