"""The model, and the same model with other attention: what it is compared with, and what each holds of a sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from inference.economics import layers
from inference.economics.layers import Layer
from inference.economics.model_sizes import Sizes
from policies.errors import InputError

MIXED: Final = (8, 4)
"""Hybrids: every so many layers, one is softmax attention."""
D_STATE: Final = 128
"""Channels of keys and values of a head of the linear attention that a softmax model is compared with."""


@final
@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the compared kinds of attention look like; None for what follows from the model."""

    heads: int | None = None
    """Heads of queries."""
    kv_heads: int | None = None
    """Heads of keys and values of the grouped one; a quarter of the heads where nothing is said."""
    mla_rank: int = 512
    """Numbers of the latent; with `mla_rope`, as in DeepSeek-V2 and V3."""
    mla_rope: int = 64
    """Channels that carry positions, for all heads."""


@final
@dataclass(frozen=True, kw_only=True)
class Variant:
    """A model as it is served."""

    key: str
    """`model`, `linear`, `hybrid-7-1`, `hybrid-3-1`, `mla`, `gqa`, `mha`."""
    title: str
    layers: tuple[Layer, ...]
    parameters: int
    active_parameters: int
    weights_bytes: int
    """Of all parameters."""
    active_bytes: int
    """Of what one decoding step reads of them."""

    @property
    def state_bytes(self) -> int:
        """Of a sequence, whatever its length."""
        return sum(layer.state_bytes for layer in self.layers)

    @property
    def token_bytes(self) -> int:
        """By which a sequence grows with each token, windows that are full left out."""
        return sum(layer.token_bytes for layer in self.layers if layer.grows)

    @property
    def windows(self) -> tuple[int, ...]:
        """The lengths at which a window is full, rising."""
        return tuple(sorted({layer.window for layer in self.layers if layer.window is not None}))

    def held(self, context: int) -> int:
        """Bytes of a sequence of `context` tokens."""
        return sum(layer.held(context) for layer in self.layers)

    def cached(self, context: int) -> int:
        """Those of them that are keys and values."""
        return self.held(context) - self.state_bytes

    def read(self, context: int) -> int:
        """Bytes that one token reads and writes of its sequence: states go both ways, what it looks at one."""
        return 2 * self.state_bytes + self.cached(context)

    def flops(self, context: int) -> int:
        """Operations of one decoded token."""
        mixed = sum(layer.state_flops + layer.seen_flops * layer.seen(context) for layer in self.layers)
        return 2 * self.active_parameters + mixed

    @property
    def prefill_crossover(self) -> int | None:
        """The length of a prompt at which attention costs as much as the weights; None where nothing grows.

        A token looks at half of the prompt in the mean, so that 2 P = prefill_flops x N / 2.
        """
        looked = sum(layer.prefill_flops for layer in self.layers if layer.grows)
        return 4 * self.active_parameters // looked if looked else None


def variants(sizes: Sizes, choices: Choices) -> tuple[Variant, ...]:
    """The model first, then what it is compared with, each with as many parameters: only the memory differs.

    Raises InputError where heads do not fit together.
    """
    found = [_variant(sizes, "model", f"{sizes.name}: {described(sizes.layers)}", sizes.layers)]
    for key, title, each in _others(sizes, choices):
        other = _variant(sizes, key, title, each)
        if all(_memory(other.layers) != _memory(known.layers) for known in found):
            found.append(other)
    return tuple(found)


def described(found: Sequence[Layer]) -> str:
    """`24 ssd`, `18 delta + 6 softmax GQA-4`."""
    return " + ".join(f"{number} {title}" for title, number in Counter(layer.title for layer in found).items())


def break_even(one: Variant, other: Variant, measure: Callable[[Variant, int], int] = Variant.held) -> int | None:
    """The shortest context from which on `one` holds less than `other`, for all longer ones; None where there is none.

    Between the lengths at which windows are full, both are straight lines. `measure` is what is compared.
    """

    def ahead(context: int) -> int:
        return measure(other, context) - measure(one, context)

    places = [1, *(place for place in sorted({*one.windows, *other.windows}) if place > 1)]
    last = places[-1]
    slope = ahead(last + 1) - ahead(last)
    if slope < 0 or (slope == 0 and ahead(last) <= 0):
        return None
    if ahead(last) <= 0:
        return last + -ahead(last) // slope + 1
    for start, end in zip(reversed(places[:-1]), reversed(places[1:]), strict=True):
        if ahead(start) <= 0:
            return start + -ahead(start) * (end - start) // (ahead(end) - ahead(start)) + 1
    return 1


def state_in_tokens(one: Variant, other: Variant) -> int | None:
    """How many tokens of `other`, begun ones left out, fill the state of `one`; None where `other` does not grow."""
    return one.state_bytes // other.token_bytes if other.token_bytes else None


def _others(sizes: Sizes, choices: Choices) -> Iterator[tuple[str, str, tuple[Layer, ...]]]:
    heads, width = sizes.heads
    heads = choices.heads or heads
    shared = choices.kv_heads or max(1, heads // 4)
    if heads % shared:
        raise InputError(f"--kv-heads {shared}: {heads} heads of queries are no multiple of it; --heads sets those")
    grouped = _softmax(sizes, heads, shared, width)
    base = sizes.layers
    depth = len(base)
    if not all(layer.recurrent for layer in base):
        # A model of softmax attention, or a hybrid: what it would be without.
        alone = layers.delta(
            sizes.d_model,
            n_heads=heads,
            d_key=D_STATE,
            d_value=D_STATE,
            taps=4,
            tail_bytes=max(sizes.weights_bytes, 2),
        )
        base = (alone,) * depth
        yield "linear", f"linear: {described(base)}", base
    for every in MIXED:
        mixed = tuple(grouped if number % every == every - 1 else layer for number, layer in enumerate(base))
        yield f"hybrid-{every - 1}-1", f"hybrid {every - 1}:1 with {grouped.title}", mixed
    latent = layers.mla(
        sizes.d_model,
        n_heads=heads,
        kv_rank=choices.mla_rank,
        d_rope=choices.mla_rope,
        d_head=128,
        d_value=128,
        cache_bytes=sizes.cache_bytes,
    )
    yield "mla", latent.title, (latent,) * depth
    yield "gqa", grouped.title, (grouped,) * depth
    whole = _softmax(sizes, heads, heads, width)
    yield "mha", whole.title, (whole,) * depth


def _softmax(sizes: Sizes, heads: int, shared: int, width: int) -> Layer:
    return layers.softmax(
        sizes.d_model, n_heads=heads, n_kv_heads=shared, d_head=width, window=None, cache_bytes=sizes.cache_bytes
    )


def _memory(found: Sequence[Layer]) -> Counter[tuple[int, int, int | None]]:
    """What the layers hold, by which a variant is told from another."""
    return Counter((layer.state_bytes, layer.token_bytes, layer.window) for layer in found)


def _variant(sizes: Sizes, key: str, title: str, found: tuple[Layer, ...]) -> Variant:
    return Variant(
        key=key,
        title=title,
        layers=found,
        parameters=sizes.parameters,
        active_parameters=sizes.active_parameters,
        weights_bytes=sizes.parameters * sizes.weights_bytes,
        active_bytes=sizes.active_parameters * sizes.weights_bytes,
    )
