"""`POST /v1/completions`: from a body to an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from inference.protocol.errors import echo, invalid
from inference.protocol.field_rows import FIELDS
from inference.protocol.fields import Endpoint, check_fields, check_model
from inference.protocol.json_body import parse_body
from inference.protocol.order import Arrival, Kind, Order
from inference.protocol.ordering import Prompt, Wanted, check_answers, make_order
from inference.protocol.served_model import ServedModel
from inference.protocol.stopping import check_length, check_text_length, token_ids

DEFAULT_MAX_TOKENS: Final = 16
"""Of an answer, where a request does not say; as in the API of OpenAI."""


def parse_completion(body: bytes, model: ServedModel, arrival: Arrival) -> Order:
    """What `body` asks for. Raises ApiError (400, 404), whatever it holds."""
    found = check_fields(FIELDS[Endpoint.COMPLETIONS], parse_body(body))
    check_model(found, model.name)
    _check_best_of(found)
    prompts = _prompts(found, model)
    wanted = Wanted(
        kind=Kind.COMPLETION,
        max_tokens=found.get("max_tokens", DEFAULT_MAX_TOKENS),
        logprobs=found.get("logprobs"),
        ends=frozenset({model.end_of_text}),
        echo=found.get("echo", False),
    )
    return make_order(found, prompts, wanted, model=model, arrival=arrival)


def _check_best_of(found: Mapping[str, Any]) -> None:
    count = found.get("n", 1)
    if found.get("best_of", count) != count:
        raise invalid(
            "best_of",
            f"is {echo(found['best_of'])}, and n is {count}: answers are not ranked",
            code="unsupported_value",
        )


def _prompts(found: Mapping[str, Any], model: ServedModel) -> tuple[Prompt, ...]:
    if "prompt" not in found:
        raise invalid("prompt", "is missing; it is what is to be gone on from", code="missing_required_parameter")
    prompts = _texts_or_ids(found["prompt"])
    check_answers(found, len(prompts), model)
    texts = [prompt for prompt in prompts if isinstance(prompt, str)]
    if texts:
        for text in texts:
            check_text_length("prompt", [text], model)
        ids: Sequence[Sequence[int]] = model.tokenizer.encode_batch(texts)
    else:
        ids = [token_ids(prompt, "prompt", model) for prompt in prompts]
    return tuple(_prompt(tokens, model) for tokens in ids)


def _prompt(tokens: Sequence[int], model: ServedModel) -> Prompt:
    check_length("prompt", len(tokens), model)
    return Prompt(tokens=tuple(tokens) or (model.end_of_text,))


def _texts_or_ids(sent: Any) -> Sequence[Any]:
    """The prompts, all texts or all lists."""
    if isinstance(sent, str):
        return [sent]
    kinds = {type(part) for part in sent}
    if kinds == {int} or not sent:
        return [sent]
    if kinds in ({str}, {list}):
        return list(sent)
    strange = [part for part in sent if type(part) not in (int, str, list)]
    odd = (strange or [part for part in sent if type(part) is not type(sent[0])])[0]
    raise invalid(
        "prompt",
        f"has {echo(odd)} in it; it is a string, a list of strings, a list of token ids, or a list of such lists",
        code="invalid_type",
    )
