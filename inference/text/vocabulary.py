"""The bytes that each token stands for.

A character may be spread over several tokens, so that only the bytes of a token are well defined, never its text alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, final

from inference.errors import ServingError
from training.model.tokenizer import Tokenizer


@final
class Vocabulary:
    """What every id from 0 to `size` - 1 stands for.

    Raises ServingError for a tokenizer that is not byte-level, and for one with more tokens than `size`, which is the
    vocabulary of the model: it may be padded above that of the tokenizer, never the other way round.
    """

    def __init__(self, tokenizer: Tokenizer, size: int) -> None:
        if tokenizer.vocab_size > size:
            raise ServingError(
                f"tokenizer.json: has {tokenizer.vocab_size} tokens, and the model {size}; both are of one export"
            )
        layout = json.loads(tokenizer.to_json())
        _check_byte_level(layout)
        whole = [b""] * size
        for text, token in layout["model"]["vocab"].items():
            whole[token] = _bytes_of(text)
        special = set(tokenizer.reserved.values())
        for added in layout["added_tokens"]:
            whole[added["id"]] = added["content"].encode()
            if added["special"]:
                special.add(added["id"])
        self.special: Final = frozenset(special)
        """The tokens that no text can bring about, and that stand for none."""
        self._whole: Final = tuple(whole)
        self._visible: Final = tuple(b"" if token in special else piece for token, piece in enumerate(whole))
        self.longest: Final = max(map(len, self._visible))
        """Bytes of the longest token: a text of n bytes has at least n / longest tokens."""
        self._names: Final = tuple(map(_name, whole))

    @property
    def size(self) -> int:
        """Tokens that there are."""
        return len(self._whole)

    def pieces(self, *, skip_special: bool) -> Sequence[bytes]:
        """The bytes of every token; special tokens have none where they are skipped, and their names otherwise."""
        return self._visible if skip_special else self._whole

    def name(self, token: int, piece: bytes | None = None) -> str:
        """How a token is written where it stands alone; `piece` where less than the whole of it is meant.

        Its text; `bytes:\\xed\\x95` where it is no text by itself, as in the API of OpenAI; the name of a special one.
        """
        if piece is None or token in self.special:
            return self._names[token]
        return _name(piece)


def _name(piece: bytes) -> str:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)


def _check_byte_level(layout: Mapping[str, Any]) -> None:
    decoder = layout.get("decoder") or {}
    kinds = {part.get("type") for part in decoder.get("decoders", [decoder])}
    model = layout["model"].get("type")
    if kinds != {"ByteLevel"} or model != "BPE":
        raise ServingError(
            f"tokenizer.json: is {model} with the decoder {' and '.join(sorted(map(str, kinds)))}; what is served here "
            "is byte-level BPE, as `python -m training export` writes it"
        )


def _alphabet() -> Mapping[str, int]:
    """The character by which a byte-level vocabulary writes each byte: itself where it is printable in Latin-1."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTES: Final = MappingProxyType(dict(_alphabet()))


def _bytes_of(text: str) -> bytes:
    """As the decoder of the tokenizers library has it: a token with any other character stands for its own text."""
    found = [_BYTES.get(character) for character in text]
    known = [byte for byte in found if byte is not None]
    return bytes(known) if len(known) == len(found) else text.encode()
