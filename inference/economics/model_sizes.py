"""The sizes of a model from a file: the `config.json` of an export, or YAML with the same fields.

    name: my-model            # as it is called; the name of the file without it
    d_model: 2048             # channels of the residual stream
    n_layers: 24              # a multiple of the length of the pattern
    mixers:                   # the pattern of mixers, repeated over the depth
      - {type: ssd}
      - {type: softmax, n_heads: 16, n_kv_heads: 4}
    d_feed_forward: 5632      # of the gated feed-forward   } these two, or
    vocab_size: 50304         #                             } `parameters`
    tie_embeddings: true
    parameters: 1.3B          # all of them, where they are not what the sizes above come to
    active_parameters: 1.3B   # what one token meets, where that is less: a mixture of experts
    weights_dtype: bfloat16   # float32, bfloat16 or int8
    cache_dtype: bfloat16     # of keys and values: float32, bfloat16, float8 or int8

Mixers are `based`, `lightning`, `linear`, `retention`, `softmax` and `ssd` with the fields of training/mixers and their
defaults; and `delta` (n_heads, d_key 128, d_value 128, taps 4), the gated delta rule, and `mla` (n_heads, kv_rank 512,
d_rope 64, d_head 128, d_value 128), multi-head latent attention. States are fp32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from inference.economics import layers
from inference.economics.layers import Layer
from inference.economics.sheet import Sheet, read_sheet
from policies.errors import InputError
from policies.hardware.errors import hint

SCHEMA: Final = "spotrail.model/1"
WEIGHTS: Final = {"float32": 4, "bfloat16": 2, "int8": 1}
CACHES: Final = {**WEIGHTS, "float8": 1}
FIELDS: Final = (
    "name",
    "d_model",
    "n_layers",
    "mixers",
    "d_feed_forward",
    "vocab_size",
    "tie_embeddings",
    "parameters",
    "active_parameters",
    "weights_dtype",
    "cache_dtype",
)
OF_TRAINING: Final = ("schema", "norm_eps", "z_loss", "checkpoint_policy")
"""What a config.json has beside them, and no size depends on."""
MOST_LAYERS: Final = 10_000
MOST_WIDTH: Final = 2**20


@final
@dataclass(frozen=True, kw_only=True)
class Sizes:
    """A model, as far as its memory and its speed depend on it."""

    name: str
    d_model: int
    layers: tuple[Layer, ...]
    """One a layer, in the order of the depth."""
    parameters: int
    """All that are resident."""
    active_parameters: int
    """Those that one token meets: all but the rows of an input embedding that is not tied, and experts not chosen."""
    weights_bytes: int
    """Of one parameter."""
    cache_bytes: int
    """Of one number of keys and values."""
    heads: tuple[int, int]
    """Heads of queries and channels of each, for the kinds of attention that the model is compared with."""


@final
@dataclass(frozen=True, kw_only=True)
class _Room:
    """What a mixer is built in."""

    d_model: int
    weights_bytes: int
    cache_bytes: int


def read_sizes(path: Path, *, weights_dtype: str | None = None, cache_dtype: str | None = None) -> Sizes:
    """The sizes in a file, or in the config.json of an export's folder. Raises InputError: file, field, value, rule.

    The dtypes, where they are given, stand in the place of those of the file: a config.json has none.
    """
    sheet = read_sheet(path / "config.json" if path.is_dir() else path)
    dtypes = (
        weights_dtype or sheet.choice("weights_dtype", WEIGHTS, "bfloat16"),
        cache_dtype or sheet.choice("cache_dtype", CACHES, "bfloat16"),
    )
    return _sizes(sheet, path, *dtypes)


def _sizes(sheet: Sheet, path: Path, weights_dtype: str, cache_dtype: str) -> Sizes:
    if isinstance(sheet.entries.get("model"), Sheet):
        raise InputError(
            f"{path}: is the config of a training run, whose vocabulary is in its data; name the folder of an export "
            "(python -m training export), or a file with the fields of `model:` and vocab_size"
        )
    sheet.check_names((*FIELDS, *OF_TRAINING))
    if "schema" in sheet.entries:
        sheet.choice("schema", (SCHEMA,), SCHEMA)
    room = _Room(
        d_model=sheet.whole("d_model", most=MOST_WIDTH),
        weights_bytes=WEIGHTS[weights_dtype],
        cache_bytes=CACHES[cache_dtype],
    )
    n_layers = sheet.whole("n_layers", most=MOST_LAYERS)
    mixers = sheet.sheets("mixers")
    if n_layers % len(mixers):
        sheet.refuse("n_layers", f"is {n_layers}, no multiple of the {len(mixers)} mixers, which are repeated over it")
    pattern = [_mixer(mixer, room) for mixer in mixers]
    found = tuple(pattern * (n_layers // len(pattern)))
    parameters, active = _parameters(sheet, room.d_model, found)
    return Sizes(
        name=sheet.text("name", path.name if path.is_dir() else path.stem),
        d_model=room.d_model,
        layers=found,
        parameters=parameters,
        active_parameters=active,
        weights_bytes=room.weights_bytes,
        cache_bytes=room.cache_bytes,
        heads=_heads(mixers, room.d_model),
    )


def _parameters(sheet: Sheet, d_model: int, found: tuple[Layer, ...]) -> tuple[int, int]:
    """All parameters and the active ones: as given, else what the sizes come to."""
    tied = sheet.truth("tie_embeddings", True)
    given = sheet.optional("parameters", most=10**15)
    hidden, words = sheet.optional("d_feed_forward"), sheet.optional("vocab_size")
    if given is None and (hidden is None or words is None):
        missing = "d_feed_forward" if hidden is None else "vocab_size"
        sheet.refuse(
            "parameters", f"is missing, and so is {missing}; give the one, or both d_feed_forward and vocab_size"
        )
    embedding = (words or 0) * d_model
    blocks = sum(layer.parameters for layer in found) + len(found) * d_model * (2 + 3 * (hidden or 0))
    whole = given if given is not None else blocks + d_model + embedding * (1 if tied else 2)
    active = sheet.optional("active_parameters", most=10**15)
    if active is not None and active > whole:
        sheet.refuse("active_parameters", f"is {active:,}, more than the {whole:,} that there are")
    if active is not None:
        return whole, active
    return whole, whole - (0 if tied or embedding >= whole else embedding)


def _heads(mixers: tuple[Sheet, ...], d_model: int) -> tuple[int, int]:
    """Those of the first softmax attention; else heads of 128 channels, or of as many as divide the width."""
    for mixer in mixers:
        if mixer.entries.get("type") == "softmax":
            heads = mixer.whole("n_heads")
            return heads, mixer.optional("d_head") or d_model // heads
    width = next((each for each in (128, 64, 32, 16) if d_model % each == 0), d_model)
    return d_model // width, width


def _mixer(sheet: Sheet, room: _Room) -> Layer:
    if sheet.entries.get("type") is None:
        sheet.refuse("type", f"is missing; it is one of {', '.join(MIXERS)}")
    kind = sheet.text("type", "")
    if kind not in MIXERS:
        sheet.refuse("type", f"is {kind!r}; it is one of {', '.join(MIXERS)}.{hint(kind, MIXERS)}")
    fields, build = MIXERS[kind]
    sheet.check_names(("type", *fields))
    return build(sheet, room)


def _softmax(sheet: Sheet, room: _Room) -> Layer:
    heads = sheet.whole("n_heads")
    shared = sheet.optional("n_kv_heads") or heads
    if heads % shared:
        sheet.refuse("n_kv_heads", f"is {shared}, and n_heads {heads} is no multiple of it")
    width = sheet.optional("d_head") or _divided(sheet, room.d_model, "n_heads", heads)
    window = sheet.optional("window")
    return layers.softmax(
        room.d_model, n_heads=heads, n_kv_heads=shared, d_head=width, window=window, cache_bytes=room.cache_bytes
    )


def _mla(sheet: Sheet, room: _Room) -> Layer:
    return layers.mla(
        room.d_model,
        n_heads=sheet.whole("n_heads"),
        kv_rank=sheet.whole("kv_rank", 512),
        d_rope=sheet.whole("d_rope", 64, least=0),
        d_head=sheet.whole("d_head", 128),
        d_value=sheet.whole("d_value", 128),
        cache_bytes=room.cache_bytes,
    )


def _linear(sheet: Sheet, room: _Room) -> Layer:
    heads = sheet.whole("n_heads")
    _divided(sheet, room.d_model, "n_heads", heads)
    return layers.linear(room.d_model, n_heads=heads)


def _based(sheet: Sheet, room: _Room) -> Layer:
    heads = sheet.whole("n_heads")
    _divided(sheet, room.d_model, "n_heads", heads)
    width, taps = sheet.whole("d_feature", 16), sheet.whole("taps", 4, least=0)
    return layers.based(room.d_model, n_heads=heads, d_feature=width, taps=taps, tail_bytes=max(room.weights_bytes, 2))


def _lightning(sheet: Sheet, room: _Room) -> Layer:
    heads = sheet.whole("n_heads")
    width = sheet.optional("d_head") or _divided(sheet, room.d_model, "n_heads", heads)
    return layers.lightning(room.d_model, n_heads=heads, d_head=width)


def _retention(sheet: Sheet, room: _Room) -> Layer:
    heads = sheet.whole("n_heads")
    _divided(sheet, room.d_model, "n_heads", heads)
    return layers.retention(room.d_model, n_heads=heads, value_factor=sheet.whole("value_factor", 2))


def _ssd(sheet: Sheet, room: _Room) -> Layer:
    expand, width, groups = sheet.whole("expand", 2), sheet.whole("d_head", 64), sheet.whole("n_groups", 1)
    heads = _divided(sheet, expand * room.d_model, "d_head", width)
    if heads % groups:
        sheet.refuse("n_groups", f"is {groups}, and the {heads} heads are no multiple of it")
    return layers.ssd(
        room.d_model,
        expand=expand,
        d_head=width,
        d_state=sheet.whole("d_state", 128),
        n_groups=groups,
        taps=sheet.whole("taps", 4, least=0),
        tail_bytes=max(room.weights_bytes, 2),
    )


def _delta(sheet: Sheet, room: _Room) -> Layer:
    return layers.delta(
        room.d_model,
        n_heads=sheet.whole("n_heads"),
        d_key=sheet.whole("d_key", 128),
        d_value=sheet.whole("d_value", 128),
        taps=sheet.whole("taps", 4, least=0),
        tail_bytes=max(room.weights_bytes, 2),
    )


def _divided(sheet: Sheet, whole: int, name: str, parts: int) -> int:
    if whole % parts:
        sheet.refuse(name, f"is {parts}, and {whole} channels are no multiple of it")
    return whole // parts


MIXERS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Sheet, _Room], Layer]]]] = {
    "based": (("n_heads", "d_feature", "taps", "chunk"), _based),
    "delta": (("n_heads", "d_key", "d_value", "taps"), _delta),
    "lightning": (("n_heads", "d_head", "norm_eps", "chunk"), _lightning),
    "linear": (("n_heads", "chunk"), _linear),
    "mla": (("n_heads", "kv_rank", "d_rope", "d_head", "d_value"), _mla),
    "retention": (("n_heads", "value_factor", "rope_base", "norm_eps", "chunk"), _retention),
    "softmax": (("n_heads", "n_kv_heads", "d_head", "window", "rope_base", "rope_fraction", "block"), _softmax),
    "ssd": (
        ("expand", "d_head", "d_state", "n_groups", "taps", "dt_min", "dt_max", "norm_eps", "chunk"),
        _ssd,
    ),
}
"""The fields of each kind of mixer, and how its layer is made of them."""
