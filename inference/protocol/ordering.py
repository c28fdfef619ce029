"""From checked fields and prompts to an order: what chat and completions have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from inference.protocol.errors import invalid
from inference.protocol.field_rows import LONGEST_SALT
from inference.protocol.order import Arrival, Kind, Order
from inference.protocol.sampling import sampling_parameters
from inference.protocol.served_model import ServedModel
from inference.protocol.stopping import max_tokens, min_tokens, stop_strings, stop_tokens
from inference.protocol.stream_options import stream_options
from inference.scheduling.generation import Generation
from inference.text.answer import TextOptions


@final
@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What is to be answered."""

    tokens: tuple[int, ...]
    """At least one, and fewer than the context has."""
    turn_ends: tuple[int, ...] = ()
    """As in Generation."""


@final
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the two endpoints say differently."""

    kind: Kind
    """The shape of the answer."""
    max_tokens: int | None
    """Asked for; None: all that there are."""
    logprobs: int | None
    """Alternatives of each token; None: no log-probabilities."""
    ends: frozenset[int]
    """The tokens of the model that end an answer."""
    echo: bool = False
    """Whether the prompt is shown."""


def make_order(
    found: Mapping[str, Any], prompts: Sequence[Prompt], wanted: Wanted, *, model: ServedModel, arrival: Arrival
) -> Order:
    """The order for `n` answers to each prompt. Raises ApiError (400)."""
    text = TextOptions(
        stops=stop_strings(found),
        include_stop=found.get("include_stop_str_in_output", False),
        skip_special=found.get("skip_special_tokens", True),
        tokens=wanted.logprobs is not None,
        echo=wanted.echo,
    )
    options = stream_options(found)
    return Order(
        kind=wanted.kind,
        id=wanted.kind.id_prefix + arrival.unique,
        created=arrival.created,
        model=model,
        generations=_generations(found, prompts, wanted, model=model, arrival=arrival),
        choices=found.get("n", 1),
        text=text,
        stream=found.get("stream", False),
        include_usage=options.include_usage,
        continuous_usage=options.continuous_usage,
        return_token_ids=found.get("return_token_ids", False),
    )


def check_answers(found: Mapping[str, Any], prompts: int, model: ServedModel) -> None:
    """Refuse more answers than one request may ask for. Raises ApiError (400)."""
    count = found.get("n", 1)
    if prompts * count > model.most_answers:
        raise invalid(
            "n", f"is {count}, for {prompts} prompts; a request asks for at most {model.most_answers} answers in all"
        )


def _generations(
    found: Mapping[str, Any], prompts: Sequence[Prompt], wanted: Wanted, *, model: ServedModel, arrival: Arrival
) -> tuple[Generation, ...]:
    """Prompt by prompt. A seed that was sent draws for each prompt alike; without one all answers are drawn apart."""
    parameters = sampling_parameters(found, logprobs=wanted.logprobs, arrival=arrival, model=model)
    stops = stop_tokens(found, ends=wanted.ends, model=model)
    least = min_tokens(found, wanted.max_tokens)
    salt = _cache_salt(found)
    count = found.get("n", 1)
    generations = []
    for place, prompt in enumerate(prompts):
        most = max_tokens(wanted.max_tokens, len(prompt.tokens), model)
        first = Generation(
            request_id=arrival.request_id,
            prompt=prompt.tokens,
            parameters=parameters,
            max_tokens=most,
            stop_tokens=stops,
            min_tokens=min(least, most),
            score_prompt=wanted.echo and wanted.logprobs is not None,
            tenant=arrival.tenant,
            cache_salt=salt,
            turn_ends=prompt.turn_ends,
        )
        before = 0 if "seed" in found else place * count
        draws = (replace(parameters, draw=before + draw) for draw in range(count))
        generations += [replace(first, parameters=drawn) for drawn in draws]
    return tuple(generations)


def _cache_salt(found: Mapping[str, Any]) -> str:
    salt: str = found.get("cache_salt", "")
    if len(salt) > LONGEST_SALT:
        raise invalid("cache_salt", f"has {len(salt)} characters; {LONGEST_SALT} at most")
    return salt
