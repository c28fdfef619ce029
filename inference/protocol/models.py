"""`GET /v1/models`, in the shape of OpenAI with the `max_model_len` of vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from inference.protocol.errors import model_not_found
from inference.protocol.served_model import ServedModel

OWNER: Final = "spotrail"
"""Who a model is said to belong to."""


def models_body(model: ServedModel) -> bytes:
    """The list, of the one that is served."""
    return orjson.dumps({"object": "list", "data": [_card(model)]})


def model_body(asked: str, model: ServedModel) -> bytes:
    """One model by its name. Raises ApiError (404)."""
    if asked != model.name:
        raise model_not_found(asked, model.name)
    return orjson.dumps(_card(model))


def _card(model: ServedModel) -> Mapping[str, Any]:
    return {
        "id": model.name,
        "object": "model",
        "created": model.created,
        "owned_by": OWNER,
        "root": model.name,
        "parent": None,
        "max_model_len": model.context,
    }
