"""What a model of OpenAI's client was given beside its own fields."""

from __future__ import annotations

from pydantic import BaseModel


def extras(model: object) -> list[str]:
    """The names of all fields, at any depth, that the client does not know."""
    if isinstance(model, list):
        return [name for part in model for name in extras(part)]
    if not isinstance(model, BaseModel):
        return []
    own = [value for _, value in model if isinstance(value, BaseModel | list)]
    return [*(model.model_extra or {}), *extras(own)]
