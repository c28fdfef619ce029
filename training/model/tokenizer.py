"""Byte-level BPE: text to tokens and back, by one function for training and for serving.

Whatever text goes in comes out again: `decode(encode(text)) == text`, but for surrogates that stand alone, which are no
text (`scalar_text`). A marker such as `<|user|>` inside a text is text: only who asks for `reserved` gets its token, so
that nobody can write himself a turn. Serving reads the same file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Model

from training.errors import TrainingError

END_OF_TEXT: Final = "<|end_of_text|>"
"""Ends every document."""
RESERVED: Final = (END_OF_TEXT, "<|system|>", "<|user|>", "<|assistant|>", "<|end_of_turn|>")
"""Tokens that no text can bring about; a trained tokenizer has them as 0 to 4."""
SMALLEST: Final = 256 + len(RESERVED)
"""Vocabulary of a tokenizer that merges nothing: the bytes and the reserved."""
LARGEST: Final = 1 << 20
LONGEST: Final = 32
"""Characters of the longest run that is merged as one: a million equal characters then take linear time."""
_RUNS: Final = (
    r"'(?:[sdmt]|ll|ve|re)"
    rf"| ?[\p{{L}}\p{{M}}]{{1,{LONGEST}}}"
    r"| ?\p{N}{1,3}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]{{1,{LONGEST}}}"
    rf"|\s{{1,{LONGEST}}}(?!\S)|\s{{1,{LONGEST}}}"
)
_PROBES: Final = ("Two words", "  and more,\tÅ e\u0301 \u4f60\u597d \U0001f44b\r\n\n\x00 <|user|> x+=1;")


def scalar_text(text: str) -> str:
    """`text` as Unicode scalar values: a pair of surrogates is the character that it means, a lone one U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


@final
class Tokenizer:
    """Text to token ids and back. `vocab_size` is one more than the largest id."""

    def __init__(self, model: Model) -> None:
        model.no_padding()
        model.no_truncation()
        model.add_special_tokens(list(RESERVED))
        model.encode_special_tokens = True
        vocabulary = model.get_vocab(with_added_tokens=True)
        self._model = model
        self.vocab_size: Final = max(vocabulary.values()) + 1
        self.reserved: Final[Mapping[str, int]] = MappingProxyType({token: vocabulary[token] for token in RESERVED})
        self.end: Final = self.reserved[END_OF_TEXT]

    def encode(self, text: str) -> list[int]:
        """The tokens of `text`; never a reserved one."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, on all cores."""
        # Not `encode`: it keeps the offsets of all tokens too, and its time grows faster than the text.
        found = self._model.encode_batch_fast([scalar_text(text) for text in texts], add_special_tokens=False)
        return [encoding.ids for encoding in found]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, the reserved by their names. Bytes that are no UTF-8 (half a character) become U+FFFD."""
        text: str = self._model.decode(list(ids), skip_special_tokens=False)
        return text

    def to_json(self) -> bytes:
        """The content of `tokenizer.json`: the same bytes for the same tokenizer."""
        return self._model.to_str().encode() + b"\n"

    @property
    def digest(self) -> str:
        """sha256 of `to_json()`: of two equal ones, the tokens of one are the tokens of the other."""
        return hashlib.sha256(self.to_json()).hexdigest()


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A byte-level BPE of at most `vocab_size` tokens, fewer where the text has no more to merge; deterministic.

    Raises TrainingError for a size outside 261..2^20.
    """
    if not SMALLEST <= vocab_size <= LARGEST:
        raise TrainingError(
            f"vocab_size is {vocab_size}; a byte-level tokenizer takes {SMALLEST} (256 bytes and {len(RESERVED)} "
            f"reserved tokens) to {LARGEST}"
        )
    model = Model(models.BPE())
    model.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_RUNS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    model.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(RESERVED),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator(map(scalar_text, texts), trainer)
    return Tokenizer(model)


def parse_tokenizer(content: bytes, place: str) -> Tokenizer:
    """The tokenizer that a `tokenizer.json` holds; reserved tokens that it lacks are added behind its own.

    Raises TrainingError, naming `place`, where it is none or loses text.
    """
    try:
        tokenizer = Tokenizer(Model.from_str(content.decode()))
    except Exception as error:  # noqa: BLE001 (the library raises Exception itself)
        raise TrainingError(f"{place}: is no tokenizer of the tokenizers library (tokenizer.json): {error}") from None
    for text in _PROBES:
        back = tokenizer.decode(tokenizer.encode(text))
        if back != text:
            raise TrainingError(
                f"{place}: loses text: {text!r} comes back as {back!r}. Give a byte-level tokenizer without a "
                "normalizer and without a prefix space, or none: then one is trained"
            )
    return tokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of the file `path`. Raises TrainingError as `parse_tokenizer` does, and where it cannot be read."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TrainingError(f"{path}: the tokenizer cannot be read: {error.strerror or error}") from None
    return parse_tokenizer(content, str(path))
