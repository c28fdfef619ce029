"""`POST /tokenize` and `POST /detokenize`: text to tokens and back, in the shapes of vLLM. Pure: body to body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from inference.protocol.errors import invalid
from inference.protocol.field_rows import FIELDS
from inference.protocol.fields import Endpoint, check_fields, check_model
from inference.protocol.json_body import parse_body
from inference.protocol.messages import compose_messages
from inference.protocol.served_model import ServedModel
from inference.protocol.stopping import token_ids


def tokenize(body: bytes, model: ServedModel) -> bytes:
    """The tokens of a text or of a conversation, of any length. Raises ApiError (400, 404)."""
    found = check_fields(FIELDS[Endpoint.TOKENIZE], parse_body(body))
    check_model(found, model.name)
    ids = _ids(found, model)
    answer: dict[str, Any] = {"count": len(ids), "max_model_len": model.context, "tokens": ids}
    if found.get("return_token_strs", False):
        answer["token_strs"] = [model.vocabulary.name(token) for token in ids]
    return orjson.dumps(answer)


def detokenize(body: bytes, model: ServedModel) -> bytes:
    """The text of tokens, special ones by name. Raises ApiError (400, 404)."""
    found = check_fields(FIELDS[Endpoint.DETOKENIZE], parse_body(body))
    check_model(found, model.name)
    if "tokens" not in found:
        raise invalid("tokens", "is missing; it is a list of token ids", code="missing_required_parameter")
    pieces = model.vocabulary.pieces(skip_special=False)
    ids = token_ids(found["tokens"], "tokens", model)
    return orjson.dumps({"prompt": b"".join(pieces[token] for token in ids).decode("utf-8", "replace")})


def _ids(found: Mapping[str, Any], model: ServedModel) -> list[int]:
    if ("prompt" in found) == ("messages" in found):
        raise invalid("prompt", "and messages: one of the two is needed, and only one")
    if "messages" in found:
        return compose_messages(found, model)
    return model.tokenizer.encode(found["prompt"])
