"""The table of axes on eight CPU devices: the same numbers on every mesh, and memory shared out as it says."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array

from tests.training.model.patterns import SOFTMAX, SSD, fresh, quick_jit, tiny
from training.errors import TrainingError
from training.model.language_model import LanguageModel
from training.model.loss import next_token_loss
from training.sharding import (
    Axis,
    batch_spec,
    constrain,
    make_mesh,
    named_shardings,
    parameter_axes,
    parameter_specs,
    shard,
    spec,
)

CONFIG = tiny(SOFTMAX, vocab_size=64)
ROWS = 8


@dataclass(frozen=True)
class Work:
    """A model and a batch, and what they come to without a mesh."""

    model: LanguageModel
    tokens: Array
    loss: Array
    gradient: LanguageModel


def slope(model: LanguageModel, tokens: Array) -> tuple[Array, LanguageModel]:
    """Mean loss and its gradient."""

    def loss(at: LanguageModel) -> Array:
        return next_token_loss(at, tokens, jnp.ones_like(tokens), block=16).mean_loss()

    return jax.value_and_grad(loss)(model)


@pytest.fixture(scope="module")
def work() -> Work:
    model = fresh(CONFIG)
    tokens = jax.random.randint(jax.random.key(1), (ROWS, 8), 0, 64)
    return Work(model, tokens, *quick_jit(slope)(model, tokens))


@pytest.mark.parametrize(
    ("data", "fsdp", "tensor"), [(8, 1, 1), (1, 8, 1), (2, 2, 2)], ids=["data", "fsdp", "data-fsdp-tensor"]
)
def test_loss_and_gradient_are_those_of_one_device(work: Work, data: int, fsdp: int, tensor: int) -> None:
    mesh = make_mesh(data=data, fsdp=fsdp, tensor=tensor)
    specs = parameter_specs(work.model, mesh)
    model = shard(work.model, specs, mesh)
    tokens = jax.device_put(work.tokens, NamedSharding(mesh, batch_spec(mesh, ROWS)))
    with jax.set_mesh(mesh):
        lowered = quick_jit(slope, out_shardings=(None, named_shardings(specs, mesh))).lower(model, tokens)
        compiled = lowered.compile()
        loss, gradient = compiled(model, tokens)
    np.testing.assert_allclose(loss, work.loss, rtol=1e-5)
    for mine, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(work.gradient), strict=True):
        scale = float(jnp.max(jnp.abs(other)))
        np.testing.assert_allclose(np.asarray(mine) / scale, other / scale, atol=1e-5)
    text = compiled.as_text()
    assert text is not None
    # XLA for CPU does not make a reduce-scatter of an all-reduce of which each device keeps a part, as the one for TPU.
    assert "all-reduce(" in text or "reduce-scatter(" in text
    assert ("all-gather(" in text) == (fsdp > 1)
    assert "all-to-all(" not in text  # activations stay where their rows are


def test_fsdp_shares_out_every_byte(work: Work) -> None:
    mesh = make_mesh(fsdp=8)
    model = shard(work.model, parameter_specs(work.model, mesh), mesh)
    total = sum(leaf.nbytes for leaf in jax.tree.leaves(model))
    for device in jax.devices():
        held = (
            part.data.nbytes
            for leaf in jax.tree.leaves(model)
            for part in leaf.addressable_shards
            if part.device == device
        )
        assert sum(held) * 8 == total


def test_what_is_too_small_to_share_out_is_on_every_device() -> None:
    shapes = jax.eval_shape(lambda key: LanguageModel.init(tiny(SSD), key), jax.random.key(0))
    specs = parameter_specs(shapes, make_mesh(fsdp=8))
    mixer = specs.blocks[0].mixer
    assert mixer.a_log == mixer.dt_bias == mixer.norm.weight == PartitionSpec(None, None)
    assert mixer.convolutions[0].weight == PartitionSpec(None, None, None)
    assert mixer.x_proj.weight == PartitionSpec(None, "tensor", "fsdp")  # (stack, inner, model)
    assert mixer.out_proj.weight == PartitionSpec(None, "fsdp", "tensor")
    assert specs.blocks[0].mixer_norm.weight == PartitionSpec(None, "fsdp")
    assert specs.embedding.weight == PartitionSpec("tensor", "fsdp")
    assert specs.final_norm.weight == PartitionSpec("fsdp")


def test_axes_follow_from_names() -> None:
    weight, bias = (jax.tree_util.GetAttrKey(name) for name in ("weight", "bias"))
    q, out = (jax.tree_util.GetAttrKey(name) for name in ("q_proj", "out_proj"))
    assert parameter_axes((q, weight), (4, 8)) == (Axis.INNER, Axis.MODEL)
    assert parameter_axes((out, weight), (8, 4)) == (Axis.MODEL, Axis.INNER)
    assert parameter_axes((q, bias), (4,)) == (Axis.INNER,)
    assert parameter_axes((out, bias), (8,)) == (Axis.MODEL,)
    stack = jax.tree_util.GetAttrKey("blocks")
    assert parameter_axes((stack, jax.tree_util.SequenceKey(0), q, weight), (3, 4, 8))[0] is Axis.LAYERS


def test_a_model_that_does_not_divide_is_refused_with_every_name(work: Work) -> None:
    mesh = make_mesh(fsdp=3, devices=jax.devices()[:3])
    with pytest.raises(TrainingError, match="the model does not fit the mesh") as caught:
        parameter_specs(work.model, mesh)
    assert "embedding.weight: its axis model of 16 is shared out over fsdp=3, and 16 is no multiple of 3" in str(
        caught.value
    )
    assert "blocks.0.mixer.o_proj.weight: its axis model of 16" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1 + len(jax.tree.leaves(work.model))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"data": 3},
            "data 3 × fsdp 1 × tensor 1 makes 3 devices, and there are 8. The product of the three must be 8",
        ),
        ({"fsdp": 3}, "data 2 × fsdp 3 × tensor 1 makes 6 devices, and there are 8"),
        ({"data": 0}, r"mesh\.data: 0 is no number of devices"),
        ({"tensor": 16}, "makes 16 devices, and there are 8"),
    ],
)
def test_a_mesh_that_is_not_made_of_the_devices_is_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        make_mesh(**sizes)


def test_the_data_axis_takes_what_the_others_leave() -> None:
    mesh = make_mesh(fsdp=2, tensor=2)
    assert dict(mesh.shape) == {"data": 2, "fsdp": 2, "tensor": 2}
    assert [device.id for device in mesh.devices[0, 0]] == [0, 1]  # the axis that talks most has neighbours


def test_a_batch_that_does_not_divide_is_refused() -> None:
    mesh = make_mesh(data=2, fsdp=4)
    assert batch_spec(mesh) == spec(Axis.BATCH) == PartitionSpec(("data", "fsdp"))
    with pytest.raises(
        TrainingError, match=r"batch.size: 12 rows .* data=2 × fsdp=4, .* multiple of 8. Choose 8 or 16"
    ):
        batch_spec(mesh, 12)


def test_activations_are_held_to_the_table_where_they_divide() -> None:
    x = jnp.ones((8, 3, 4))
    assert constrain(x, Axis.BATCH, Axis.TIME, Axis.INNER) is x  # without a mesh
    with jax.set_mesh(make_mesh(data=2, fsdp=2, tensor=2)):
        run = jax.jit(lambda x: constrain(x, Axis.BATCH, Axis.TIME, Axis.INNER))
        assert prod(run(x).sharding.shard_shape(x.shape)) == 2 * 3 * 2
        one = x[:1]  # a decoding step of one row
        assert run(one).sharding.shard_shape(one.shape) == (1, 3, 2)
