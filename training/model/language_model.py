"""The language model: from tokens to hidden states to logits.

Layers of one place in the pattern of mixers are stacked: each of their parameters is one array with the repeats of the
pattern as its first axis, and `jax.lax.scan` runs over it. A deep model compiles as fast as one repeat of its pattern,
and the optimizer sees few large arrays. `unrolled` gives the same model as a pattern without repeats, where each layer
is an array of its own: a decoding step then reads the parameters and updates the state where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from training.mixers.norm import RMSNorm
from training.model.block import Block
from training.model.config import CheckpointPolicy, ModelConfig
from training.model.documents import positions_in_documents
from training.model.embedding import Embedding
from training.model.paths import is_trained
from training.sharding import GATHERED, Axis, constrain, gather_parameters, gathers_parameters

POLICIES: Final = {
    CheckpointPolicy.NONE: jax.checkpoint_policies.save_anything_except_these_names(GATHERED),
    CheckpointPolicy.DOTS: jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    CheckpointPolicy.FULL: jax.checkpoint_policies.nothing_saveable,
}

Apply = Callable[[Block, Array, Any], tuple[Array, Any]]
"""How a block is run: from its input and its state to its output and its next state."""


@final
class LanguageModel(eqx.Module):
    """A decoder of blocks of equal width. Every parameter is an array; what is not trained stands in `config`."""

    embedding: Embedding
    blocks: tuple[Block, ...]
    """One block a place of the pattern; every array in it has the repeats as its first axis."""
    final_norm: RMSNorm
    lm_head: Embedding | None
    """The output embedding where it is not tied."""
    config: ModelConfig = eqx.field(static=True)

    @staticmethod
    def init(config: ModelConfig, key: PRNGKeyArray) -> LanguageModel:
        """A model with fresh parameters in fp32; each layer has a key of its own, whatever the stacking."""
        of_embedding, of_head, of_layers = jax.random.split(key, 3)
        layers = [
            Block.init(config, layer=layer, key=jax.random.fold_in(of_layers, layer))
            for layer in range(config.n_layers)
        ]
        return LanguageModel(
            embedding=Embedding.init(config.vocab_size, config.d_model, key=of_embedding),
            blocks=stacked(layers, len(config.mixers)),
            final_norm=RMSNorm.init(config.d_model, eps=config.norm_eps),
            lm_head=None if config.tie_embeddings else Embedding.init(config.vocab_size, config.d_model, key=of_head),
            config=config,
        )

    def __call__(
        self, tokens: Int[Array, "batch time"], segments: Int[Array, "batch time"] | None = None
    ) -> Float[Array, "batch time vocabulary"]:
        """Logits of every next token in fp32; without `segments`, each row is one document."""
        known = jnp.ones_like(tokens) if segments is None else segments
        return self.logits(self.hidden(tokens, positions_in_documents(known), known))

    def hidden(
        self,
        tokens: Int[Array, "batch time"],
        positions: Int[Array, "batch time"],
        segments: Int[Array, "batch time"],
    ) -> Float[Array, "batch time model"]:
        """The last hidden states, behind the last norm: what the logits are made of."""

        def run(block: Block, x: Array) -> Array:
            y, _ = gather_parameters(block)(x, positions, segments)
            return constrain(y, Axis.BATCH, Axis.TIME, Axis.ACTIVATION)

        kept = _keeping(run, self.config.checkpoint_policy)
        embedded = self.embedding(jnp.where(segments > 0, tokens, 0))  # what stands in padding is no token
        embedded = constrain(embedded, Axis.BATCH, Axis.TIME, Axis.ACTIVATION)
        x, _ = through_blocks(self.blocks, embedded, None, lambda block, x, _: (kept(block, x), None))
        return self.final_norm(x)

    @property
    def output_weight(self) -> Float[Array, "vocabulary model"]:
        """What hidden states are projected on the vocabulary with."""
        return (self.embedding if self.lm_head is None else self.lm_head).gathered_weight()

    def logits(self, hidden: Float[Array, "*tokens model"]) -> Float[Array, "*tokens vocabulary"]:
        """Logits in fp32, whatever the model computes in."""
        return jnp.einsum("...d,vd->...v", hidden, self.output_weight, preferred_element_type=jnp.float32)


def stacked(layers: Sequence[Block], places: int) -> tuple[Block, ...]:
    """Layers in the order of the depth as stacks, one a place of a pattern of `places`."""
    return tuple(jax.tree.map(lambda *arrays: jnp.stack(arrays), *layers[place::places]) for place in range(places))


def unrolled(model: LanguageModel) -> LanguageModel:
    """The same model with a pattern that is not repeated: its layers are stacks of one each, and no loop is left."""
    repeats = model.config.repeats
    blocks = tuple(
        jax.tree.map(lambda array, repeat=repeat: array[repeat : repeat + 1], block)
        for repeat in range(repeats)
        for block in model.blocks
    )
    config = replace(model.config, mixers=model.config.mixers * repeats)
    return LanguageModel(model.embedding, blocks, model.final_norm, model.lm_head, config)


def through_blocks(blocks: tuple[Block, ...], x: Array, states: Any, apply: Apply) -> tuple[Array, Any]:
    """Run `x` through every layer in the order of the depth, and its states with it.

    `states` has a state a place of the pattern, each of its arrays (batch, repeat, ...); None where there is none.
    """

    def one_repeat(x: Array, slices: tuple[tuple[Block, ...], Any]) -> tuple[Array, Any]:
        nexts = []
        for place, block in enumerate(slices[0]):
            x, state = apply(block, x, None if states is None else slices[1][place])
            nexts.append(state)
        return x, None if states is None else tuple(nexts)

    if _repeats(blocks) == 1:
        x, nexts = one_repeat(x, (jax.tree.map(lambda a: a[0], blocks), jax.tree.map(lambda a: a[:, 0], states)))
        return x, jax.tree.map(lambda a: a[:, None], nexts)
    x, nexts = jax.lax.scan(one_repeat, x, (blocks, jax.tree.map(lambda a: jnp.moveaxis(a, 1, 0), states)))
    return x, jax.tree.map(lambda a: jnp.moveaxis(a, 0, 1), nexts)


def parameter_count(model: LanguageModel) -> int:
    """Numbers that are learned; a tied embedding counts once. Shapes do (`jax.eval_shape`)."""
    return sum(leaf.size for path, leaf in jax.tree_util.tree_leaves_with_path(model) if is_trained(path))


def _keeping(run: Callable[[Block, Array], Array], policy: CheckpointPolicy) -> Callable[[Block, Array], Array]:
    """`run` with what the backward pass keeps of it, by `policy`."""
    if policy is CheckpointPolicy.NONE and not gathers_parameters():
        return run
    return jax.checkpoint(run, policy=POLICIES[policy], prevent_cse=False)


def _repeats(blocks: tuple[Block, ...]) -> int:
    return int(jax.tree.leaves(blocks)[0].shape[0])
