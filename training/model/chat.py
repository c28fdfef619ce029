"""A conversation as tokens: each turn stands between the token of its role and the one that ends a turn.

The turns are composed of ids, never of rendered text: what somebody writes is text, so that nobody can end his own turn
or begin that of another.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final, final

from training.model.tokenizer import Tokenizer

CHAT_TEMPLATE: Final = """{%- for message in messages -%}
{%- if message['role'] not in ('system', 'user', 'assistant') -%}
{{ raise_exception('a message is of system, user or assistant') }}
{%- endif -%}
<|{{ message['role'] }}|>{{ message['content'] }}<|end_of_turn|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}
"""
"""The same for other servers, `chat_template.jinja` of an export: the reserved tokens of every tokenizer here."""
END_OF_TURN: Final = "<|end_of_turn|>"


@final
class Role(enum.Enum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"

    @property
    def token(self) -> str:
        """The reserved token before a turn of the role."""
        return f"<|{self.value}|>"


def compose(tokenizer: Tokenizer, turns: Sequence[tuple[Role, str]], *, generation_prompt: bool) -> list[int]:
    """The tokens of a conversation, with those that ask for an answer where `generation_prompt`."""
    ids: list[int] = []
    for (role, _), content in zip(turns, tokenizer.encode_batch([text for _, text in turns]), strict=True):
        ids += [tokenizer.reserved[role.token], *content, tokenizer.reserved[END_OF_TURN]]
    if generation_prompt:
        ids.append(tokenizer.reserved[Role.ASSISTANT.token])
    return ids
