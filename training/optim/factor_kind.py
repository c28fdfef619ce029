"""The two kinds of Kronecker factors."""

from __future__ import annotations

import enum
from typing import final


@final
class Kind(enum.Enum):
    """What kind of factor an axis has."""

    DENSE = "dense"
    """A symmetric matrix."""
    DIAGONAL = "diagonal"
    """A vector: one number for each index of the axis."""
