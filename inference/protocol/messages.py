"""The messages of a chat, as tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from inference.protocol.errors import echo, invalid
from inference.protocol.ordering import Prompt
from inference.protocol.served_model import ServedModel
from inference.protocol.stopping import check_length, check_text_length
from training.model.chat import Role, compose

ROLES: Final[Mapping[str, Role]] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
"""The roles that a message may have, and the turn that it makes."""
BETWEEN_PARTS: Final = "\n"
"""What stands between two parts of one message, as in vLLM."""
_IGNORED: Final = frozenset({"name", "refusal", "annotations", "reasoning", "reasoning_content", "id"})
_EMPTY: Final[tuple[object, ...]] = ("", [], {})


def read_messages(found: Mapping[str, Any], model: ServedModel) -> Prompt:
    """The conversation of `found["messages"]` up to the answer, with the end of every turn. Raises ApiError (400)."""
    check_text_length("messages", [text for _, text in _turns(found)], model)
    ids = compose_messages(found, model)
    check_length("messages", len(ids), model)
    ends = (place + 1 for place, token in enumerate(ids) if token == model.end_of_turn)
    return Prompt(tokens=tuple(ids), turn_ends=tuple(ends))


def compose_messages(found: Mapping[str, Any], model: ServedModel) -> list[int]:
    """Its tokens, however many they are. Raises ApiError (400)."""
    turns = _turns(found)
    continues = found.get("continue_final_message", False)
    asks = found.get("add_generation_prompt", not continues)
    if continues and asks:
        raise invalid("continue_final_message", "is true, and add_generation_prompt too: one or the other")
    ids = compose(model.tokenizer, turns, generation_prompt=asks)
    return ids[:-1] if continues else ids


def _turns(found: Mapping[str, Any]) -> list[tuple[Role, str]]:
    messages = found.get("messages", [])
    if not messages:
        raise invalid("messages", "is empty or missing; at least one is needed", code="missing_required_parameter")
    return [_turn(message, f"messages[{place}]") for place, message in enumerate(messages)]


def _turn(message: Any, where: str) -> tuple[Role, str]:
    if not isinstance(message, dict):
        raise invalid(where, f"is {echo(message)}; it is an object with role and content", code="invalid_type")
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        hint = "; the model calls no tools" if role in ("tool", "function") else ""
        raise invalid(f"{where}.role", f"is {echo(role)}; it is one of {', '.join(ROLES)}{hint}")
    for name, value in message.items():
        if name not in ("role", "content") and name not in _IGNORED and value is not None and value not in _EMPTY:
            raise invalid(f"{where}.{name}", "is not supported: a message is its role and its content")
    return ROLES[role], _text(message.get("content"), f"{where}.content")


def _text(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(where, f"is {echo(content)}; it is a string or a list of text parts", code="invalid_type")
    return BETWEEN_PARTS.join(_parts(content, where))


def _parts(parts: Sequence[Any], where: str) -> list[str]:
    texts = []
    for place, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "text":
            told = f"of type {echo(kind)}" if kind is not None else echo(part)
            raise invalid(f"{where}[{place}]", f"is {told}; the model reads text, parts of type text")
        text = part.get("text")
        if not isinstance(text, str):
            raise invalid(f"{where}[{place}].text", f"is {echo(text)}; it is a string", code="invalid_type")
        texts.append(text)
    return texts
