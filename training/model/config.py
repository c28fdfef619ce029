"""What a language model is built from: sizes, the pattern of mixers, and how it is trained through."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, final

from training.errors import TrainingError
from training.mixers.registry import MixerConfig
from training.model.config_file import from_json_text, to_json_text

LARGEST: Final = 1 << 31
"""No axis of an array is so long."""


@final
class CheckpointPolicy(enum.Enum):
    """What the forward pass keeps of a block for the backward pass; the rest is computed again there."""

    NONE = "none"
    """No recomputation: everything is kept."""
    DOTS = "dots"
    """Results of products with parameters are kept; what stands between them is computed again."""
    FULL = "full"
    """The input of the block alone is kept: least memory, about a third more work."""


@final
@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A decoder: embedding, `n_layers` blocks of a mixer and a gated feed-forward, a norm, and logits.

    Raises TrainingError where a size makes no model.
    """

    vocab_size: int
    """Tokens that there are."""
    d_model: int
    """Channels of the residual stream."""
    n_layers: int
    """Blocks; a multiple of the length of the pattern."""
    mixers: tuple[MixerConfig, ...]
    """The mixers of the first blocks; the pattern is repeated over the depth. Blocks of one place in it are stacked."""
    d_feed_forward: int
    """Hidden units of the gated feed-forward; 8/3 of `d_model` has as many parameters as a plain one of 4 `d_model`."""
    norm_eps: float = 1e-6
    """Added to the mean square in every norm of a block."""
    tie_embeddings: bool = True
    """Whether logits are made with the embedding itself."""
    z_loss: float = 1e-4
    """Weight of the squared log-sum-exp of the logits beside the cross-entropy; 0 for none."""
    checkpoint_policy: CheckpointPolicy = CheckpointPolicy.NONE
    """What the backward pass computes again."""

    def __post_init__(self) -> None:
        for name in ("vocab_size", "d_model", "n_layers", "d_feed_forward"):
            if not 1 <= (size := getattr(self, name)) < LARGEST:
                shown = str(size) if abs(size) < 10**18 else f"a number of {len(str(size))} digits"
                raise TrainingError(f"model.{name}: {shown} makes no model; it is 1 to {LARGEST - 1:,}")
        if not self.mixers:
            raise TrainingError("model.mixers: the pattern is empty; it names at least one mixer")
        if self.n_layers % len(self.mixers):
            raise TrainingError(
                f"model.n_layers: {self.n_layers} is no multiple of the {len(self.mixers)} mixers of the pattern, "
                f"which is repeated over the depth. Choose {self._whole_patterns()} layers"
            )
        if not self.norm_eps > 0:
            raise TrainingError(f"model.norm_eps: {self.norm_eps} does not keep a norm from dividing by 0; choose 1e-6")
        if not self.z_loss >= 0:
            raise TrainingError(f"model.z_loss: {self.z_loss} would push the logits apart; it is 0 or more")

    @property
    def repeats(self) -> int:
        """How often the pattern stands in the depth: the length of every stack."""
        return self.n_layers // len(self.mixers)

    def layer(self, place: int, repeat: int) -> int:
        """The number of the layer, from 0, that is `repeat` in the stack of a place of the pattern."""
        return repeat * len(self.mixers) + place

    def to_json(self) -> str:
        """The text of a config.json: every field, so that later defaults change nothing. Exact both ways."""
        return to_json_text(self)

    @classmethod
    def from_json(cls, text: str, *, where: str = "config.json") -> ModelConfig:
        """The config of such a text. Raises TrainingError that begins with `where` for anything it cannot be."""
        return from_json_text(cls, text, where=where)

    def _whole_patterns(self) -> str:
        below = self.n_layers // len(self.mixers) * len(self.mixers)
        return f"{below} or {below + len(self.mixers)}" if below else str(len(self.mixers))
