"""The mixers that there are, by the name that a configuration gives them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from jaxtyping import PRNGKeyArray

from training.mixers.based import Based, BasedConfig
from training.mixers.lightning import Lightning, LightningConfig
from training.mixers.linear import Linear, LinearConfig
from training.mixers.mixer import AbstractMixer
from training.mixers.retention import Retention, RetentionConfig
from training.mixers.softmax import Softmax, SoftmaxConfig
from training.mixers.ssd import Ssd, SsdConfig

MixerConfig: TypeAlias = BasedConfig | LightningConfig | LinearConfig | RetentionConfig | SoftmaxConfig | SsdConfig
"""What says which mixer a layer has, and how large it is; `type` tells them apart."""

MIXERS: Final[Mapping[str, type[MixerConfig]]] = MappingProxyType(
    {
        "based": BasedConfig,
        "lightning": LightningConfig,
        "linear": LinearConfig,
        "retention": RetentionConfig,
        "softmax": SoftmaxConfig,
        "ssd": SsdConfig,
    }
)
"""The config of each mixer by its `type`."""


def build_mixer(
    config: MixerConfig, d_model: int, *, layer: int, n_layers: int, key: PRNGKeyArray
) -> AbstractMixer[Any]:
    """The mixer of a layer, counted from 0, with fresh parameters in fp32.

    Raises TrainingError where the sizes of `config` do not fit a model of width `d_model`.
    """
    match config:
        case BasedConfig():
            return Based.init(config, d_model, layer=layer, n_layers=n_layers, key=key)
        case LightningConfig():
            return Lightning.init(config, d_model, layer=layer, n_layers=n_layers, key=key)
        case LinearConfig():
            return Linear.init(config, d_model, layer=layer, n_layers=n_layers, key=key)
        case RetentionConfig():
            return Retention.init(config, d_model, layer=layer, n_layers=n_layers, key=key)
        case SoftmaxConfig():
            return Softmax.init(config, d_model, layer=layer, n_layers=n_layers, key=key)
        case SsdConfig():
            return Ssd.init(config, d_model, layer=layer, n_layers=n_layers, key=key)
