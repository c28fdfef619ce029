"""How tokens are chosen, from the fields of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from inference.engine.sampling_parameters import SamplingParameters
from inference.protocol.errors import echo, invalid
from inference.protocol.fields import JsonType
from inference.protocol.order import Arrival
from inference.protocol.served_model import ServedModel

_SEEDS: Final = 2**63


def sampling_parameters(
    found: Mapping[str, Any], *, logprobs: int | None, arrival: Arrival, model: ServedModel
) -> SamplingParameters:
    """The parameters of the first answer. Raises ApiError (400)."""
    top_k = min(max(found.get("top_k", 0), 0), model.vocab_size)
    top_p = float(found.get("top_p", 1))
    if top_p == 0:
        top_p, top_k = 1.0, 1
    try:
        return SamplingParameters(
            temperature=float(found.get("temperature", 1)),
            top_k=top_k,
            top_p=top_p,
            min_p=float(found.get("min_p", 0)),
            presence_penalty=float(found.get("presence_penalty", 0)),
            frequency_penalty=float(found.get("frequency_penalty", 0)),
            repetition_penalty=float(found.get("repetition_penalty", 1)),
            logit_bias=_logit_bias(found.get("logit_bias", {}), model),
            seed=found.get("seed", arrival.seed) % _SEEDS,
            logprobs=logprobs,
        )
    except ValueError as error:  # what no range in the table says: a repetition_penalty of 0
        param, _, problem = str(error).partition(": ")
        raise invalid(param, problem, code="invalid_value") from None


def _logit_bias(sent: Mapping[str, Any], model: ServedModel) -> Mapping[int, float]:
    found: dict[int, float] = {}
    for key, bias in sent.items():
        token = int(key) if key.isascii() and key.isdecimal() and len(key) <= 9 else -1
        if not 0 <= token < model.vocab_size or token in found:
            raise invalid(
                "logit_bias", f"has the key {echo(key)}; a key is the id of a token, 0 to {model.vocab_size - 1}, once"
            )
        if not JsonType.NUMBER.holds(bias) or not -100 <= bias <= 100:
            raise invalid("logit_bias", f"gives {token} the bias {echo(bias)}; it is a number from -100 to 100")
        found[token] = float(bias)
    return found
