"""What a bucket is for, as far as its labels and names say: rules treat checkpoints and datasets differently."""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Final, final

from policies.resources import Resource, cloud_name

BUCKET: Final = "gcp:storage/bucket:Bucket"


@final
class Purpose(enum.Enum):
    """What a bucket holds."""

    CHECKPOINTS = "checkpoints"
    """Written and deleted again and again, and all that a preempted run has."""
    TEMPORARY = "temporary files"
    """Written and deleted again and again."""
    DATASETS = "datasets"
    """Read in every epoch."""
    MODELS = "models"
    """Read at every start."""
    OTHER = "something else"

    @property
    def churns(self) -> bool:
        """Whether most of what is written is soon deleted or overwritten."""
        return self in (Purpose.CHECKPOINTS, Purpose.TEMPORARY)

    @property
    def read_often(self) -> bool:
        """Whether accelerators read it while they bill."""
        return self in (Purpose.CHECKPOINTS, Purpose.DATASETS, Purpose.MODELS)


_PURPOSES: Final = {
    **dict.fromkeys(("checkpoint", "checkpoints", "ckpt", "ckpts"), Purpose.CHECKPOINTS),
    **dict.fromkeys(("tmp", "temp", "temporary", "scratch"), Purpose.TEMPORARY),
    **dict.fromkeys(("dataset", "datasets", "data", "corpus", "tokens"), Purpose.DATASETS),
    **dict.fromkeys(("model", "models", "weights"), Purpose.MODELS),
}
_WORD: Final = re.compile(rf"(?<![a-z0-9])(?:{'|'.join(_PURPOSES)})(?![a-z0-9])")


def purpose_of(bucket: Resource) -> Purpose:
    """By a word of its label `role` (or `purpose`), else of its logical name, else of its name in the cloud."""
    for text in (bucket.value("labels", "role"), bucket.value("labels", "purpose"), bucket.name, cloud_name(bucket)):
        said = _said(text) if isinstance(text, str) else None
        if said is not None:
            return said
    return Purpose.OTHER


@lru_cache(maxsize=1 << 16)
def _said(text: str) -> Purpose | None:
    """The first of the purposes that the words of `text` name. Several rules ask, each of every bucket of a stack."""
    said = {_PURPOSES[word] for word in _WORD.findall(text.lower())}
    return next((purpose for purpose in Purpose if purpose in said), None)
