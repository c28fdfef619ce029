"""What one layer holds of a sequence, and what it computes for a token: the arithmetic of each kind of mixer.

Sizes are those of training/mixers, which a test holds against the arrays that they make; `delta` (the gated delta rule)
and `mla` (multi-head latent attention) are there to compare with. Bytes are of one sequence, operations of one token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

STATE_BYTES: Final = 4
"""Of a number of a recurrent state: fp32, in any model, since it is a sum over all tokens."""
READ_AND_WRITE: Final = 5
"""Operations a number of a state: the decay, a product and a sum for what is written, and for what is read."""
ERASE: Final = 2
"""The delta rule reads the state once more, to take away what stood under the key."""


@final
@dataclass(frozen=True, kw_only=True)
class Layer:
    """The mixer of one layer."""

    title: str
    """`ssd`, `softmax GQA-4`, `window 128`."""
    parameters: int
    """Of the mixer, its norms and gates."""
    state_bytes: int = 0
    """Fixed: the recurrent state and the tails of short convolutions."""
    token_bytes: int = 0
    """Keys and values, or what stands for them, of each token that is held."""
    window: int | None = None
    """How many tokens are held at most; None for all."""
    state_flops: int = 0
    """Operations on the state for each token."""
    seen_flops: int = 0
    """Operations for each earlier token that a decoded token looks at."""
    prefill_flops: int = 0
    """The same where many tokens are read at once; another form of the same attention may be cheaper there."""

    @property
    def recurrent(self) -> bool:
        """Whether the layer remembers by a state of fixed size."""
        return self.state_bytes > 0

    @property
    def grows(self) -> bool:
        """Whether what it holds grows with the context without end."""
        return self.token_bytes > 0 and self.window is None

    def seen(self, context: int) -> int:
        """How many of `context` tokens it holds and looks at."""
        if not self.token_bytes:
            return 0
        return context if self.window is None else min(context, self.window)

    def held(self, context: int) -> int:
        """Bytes that it holds of a sequence of `context` tokens."""
        return self.state_bytes + self.token_bytes * self.seen(context)


def softmax(d_model: int, *, n_heads: int, n_kv_heads: int, d_head: int, window: int | None, cache_bytes: int) -> Layer:
    """Softmax attention with grouped keys and values: 2 x n_kv_heads x d_head numbers a token."""
    shared = n_kv_heads * d_head
    looked = 4 * n_heads * d_head
    kind = "MHA" if n_kv_heads == n_heads else "MQA" if n_kv_heads == 1 else "GQA"
    name = f"{kind}-{n_kv_heads}"
    return Layer(
        title=f"softmax {name}" if window is None else f"window {window:,} {name}",
        parameters=2 * d_model * (n_heads * d_head + shared),
        token_bytes=2 * shared * cache_bytes,
        window=window,
        seen_flops=looked,
        prefill_flops=looked,
    )


def mla(d_model: int, *, n_heads: int, kv_rank: int, d_rope: int, d_head: int, d_value: int, cache_bytes: int) -> Layer:
    """Multi-head latent attention (https://arxiv.org/abs/2405.04434): kv_rank + d_rope numbers a token for all heads.

    Decoding in the space of the latent, where no keys are made again; prefill with keys and values of every head.
    """
    queries = n_heads * (d_head + d_rope)
    made = n_heads * (d_head + d_value)
    return Layer(
        title=f"MLA {kv_rank}+{d_rope}",
        parameters=d_model * (queries + kv_rank + d_rope) + kv_rank * made + n_heads * d_value * d_model + kv_rank,
        token_bytes=(kv_rank + d_rope) * cache_bytes,
        seen_flops=2 * n_heads * (2 * kv_rank + d_rope),
        prefill_flops=2 * n_heads * (d_head + d_rope + d_value),
    )


def linear(d_model: int, *, n_heads: int) -> Layer:
    """Normalised linear attention: a column of ones goes along with the values."""
    d = d_model // n_heads
    return _recurrent("linear", 4 * d_model**2, n_heads * d * (d + 1))


def based(d_model: int, *, n_heads: int, d_feature: int, taps: int, tail_bytes: int) -> Layer:
    """BASED: 1 + d + d(d + 1)/2 features of each query and key, behind short convolutions."""
    features = 1 + d_feature + d_feature * (d_feature + 1) // 2
    convolved = 2 * n_heads * d_feature + d_model
    parameters = 2 * d_model * (n_heads * d_feature + d_model) + _of_taps(convolved, taps)
    tail = _tail(convolved, taps, tail_bytes)
    return _recurrent("based", parameters, n_heads * features * (d_model // n_heads + 1), tail)


def lightning(d_model: int, *, n_heads: int, d_head: int) -> Layer:
    """Lightning attention: a square state a head; queries, keys, values, gate and output are alike."""
    inner = n_heads * d_head
    return _recurrent("lightning", 5 * d_model * inner + inner + n_heads, n_heads * d_head**2)


def retention(d_model: int, *, n_heads: int, value_factor: int) -> Layer:
    """Retention: values are `value_factor` times as wide as keys."""
    return _recurrent("retention", (2 + 3 * value_factor) * d_model**2, value_factor * d_model**2 // n_heads)


def ssd(d_model: int, *, expand: int, d_head: int, d_state: int, n_groups: int, taps: int, tail_bytes: int) -> Layer:
    """Mamba-2: d_state numbers for each channel of the inside."""
    inner, shared = expand * d_model, n_groups * d_state
    heads = inner // d_head
    convolved = inner + 2 * shared
    parameters = d_model * (3 * inner + 2 * shared + heads) + _of_taps(convolved, taps) + 3 * heads + inner
    return _recurrent("ssd", parameters, inner * d_state, _tail(convolved, taps, tail_bytes))


def delta(d_model: int, *, n_heads: int, d_key: int, d_value: int, taps: int, tail_bytes: int) -> Layer:
    """The gated delta rule: d_key x d_value numbers a head, behind short convolutions of queries, keys and values."""
    keys, values = n_heads * d_key, n_heads * d_value
    convolved = 2 * keys + values
    # Queries, keys, values, gate and output, two gates a head, their bias and decay, the norm of a head.
    parameters = d_model * (2 * keys + 3 * values + 2 * n_heads) + taps * convolved + 2 * n_heads + d_value
    tail = _tail(convolved, taps, tail_bytes)
    return _recurrent("delta", parameters, keys * d_value, tail, flops=READ_AND_WRITE + ERASE)


def _recurrent(title: str, parameters: int, numbers: int, tail: int = 0, *, flops: int = READ_AND_WRITE) -> Layer:
    return Layer(
        title=title,
        parameters=parameters,
        state_bytes=numbers * STATE_BYTES + tail,
        state_flops=numbers * flops,
    )


def _of_taps(channels: int, taps: int) -> int:
    """Weights and biases of short convolutions; none without taps."""
    return channels * (taps + 1) if taps else 0


def _tail(channels: int, taps: int, number_bytes: int) -> int:
    """The last inputs of short convolutions, in the dtype of the model."""
    return channels * (taps - 1) * number_bytes if taps else 0
