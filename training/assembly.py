"""The parts of a run put together: model, optimizer, mesh and the compiled functions over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from training.config import RunConfig
from training.model.language_model import LanguageModel
from training.model.paths import is_stacked
from training.optim.build import build_optimizer, learning_rate
from training.optim.state_specs import optimizer_specs
from training.sampling import Sampler, make_sampler
from training.sharding import batch_spec, make_mesh, named_shardings, parameter_specs, spec
from training.train_step import TrainState, TrainStep, make_train_step, make_validation


@final
@dataclass(frozen=True, kw_only=True)
class Assembly:
    """What a run computes with. Everything in it follows from the configuration and the devices."""

    mesh: Mesh
    """All devices."""
    optimizer: optax.GradientTransformationExtraArgs
    """Guarded."""
    learning_rate: optax.Schedule
    """Of the update that follows so many others."""
    shardings: TrainState
    """Where every array of the state lies."""
    shapes: TrainState
    """Shape and dtype of every array of the state."""
    rows: NamedSharding
    """Where the rows of a batch lie."""
    step: TrainStep
    validate: Any
    """(model, tokens, segments) -> LossSums."""
    sample: Sampler


def assemble(config: RunConfig) -> Assembly:
    """Put a run together, without computing anything yet.

    Raises TrainingError where batch, model or optimizer do not fit the devices.
    """
    mesh = make_mesh(data=config.mesh.data, fsdp=config.mesh.fsdp, tensor=config.mesh.tensor)
    rows = NamedSharding(mesh, batch_spec(mesh, config.batch.size))
    compute = jnp.dtype(config.compute.value)
    optimizer = build_optimizer(config.optim, config.learning, steps=config.steps, stacked=is_stacked)
    shapes = jax.eval_shape(lambda key: _fresh(config, optimizer, key), jax.random.key(0))
    specs = _specs(config, shapes, mesh)
    shardings = named_shardings(specs, mesh)
    return Assembly(
        mesh=mesh,
        optimizer=optimizer,
        learning_rate=learning_rate(config.optim, config.learning, config.steps),
        shardings=shardings,
        shapes=shapes,
        rows=rows,
        step=make_train_step(
            optimizer,
            z_loss=config.model.z_loss,
            compute=compute,
            accumulate=config.batch.accumulate,
            shardings=shardings,
        ),
        validate=make_validation(compute=compute),
        sample=make_sampler(tokens=config.log.sample_tokens, temperature=config.log.temperature, compute=compute),
    )


def fresh_state(config: RunConfig, assembly: Assembly) -> TrainState:
    """The state before the first step, made where it lies."""
    make = jax.jit(lambda key: _fresh(config, assembly.optimizer, key), out_shardings=assembly.shardings)
    state: TrainState = make(parameter_key(config.seed))
    return state


def parameter_key(seed: int) -> PRNGKeyArray:
    """The key that parameters are drawn with. Keys of a run never depend on how often it was started."""
    return jax.random.fold_in(_seeded(seed), 0)


def sample_key(seed: int, step: int) -> PRNGKeyArray:
    """The key of the sample that follows a step."""
    return jax.random.fold_in(jax.random.fold_in(_seeded(seed), 1), step)


def _seeded(seed: int) -> PRNGKeyArray:
    """Both halves of a seed count, where a 32-bit integer would cut it off."""
    return jax.random.fold_in(jax.random.key(seed & 0xFFFF_FFFF), seed >> 32)


def _fresh(config: RunConfig, optimizer: optax.GradientTransformationExtraArgs, key: PRNGKeyArray) -> TrainState:
    model = LanguageModel.init(config.model, key)
    count: Int[Array, ""] = jnp.zeros((), jnp.int32)
    return TrainState(model=model, opt_state=optimizer.init(model), step=count)


def _specs(config: RunConfig, shapes: TrainState, mesh: Mesh) -> PyTree:
    parameters = parameter_specs(shapes.model, mesh)
    return TrainState(
        model=parameters,
        opt_state=optimizer_specs(config.optim, shapes.opt_state, shapes.model, parameters, mesh, stacked=is_stacked),
        step=spec(),  # type: ignore[arg-type]
    )
