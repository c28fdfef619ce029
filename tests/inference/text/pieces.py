"""A vocabulary of any pieces of bytes, and answers made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from tokenizers import Tokenizer as Model
from tokenizers import decoders, models, pre_tokenizers

from inference.engine.abstract_engine import Choice
from inference.engine.sampling_parameters import SamplingParameters
from inference.scheduling.generation import Ended, Generation, Reason, Timings
from inference.text.answer import Answer, Delta, TextOptions
from inference.text.stops import StopStrings
from inference.text.vocabulary import Vocabulary
from training.model.tokenizer import RESERVED, Tokenizer

NO_STOPS = StopStrings()


def letters() -> dict[int, str]:
    """How byte-level vocabularies write each byte: as GPT-2 does, by its own loop."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = count(256)
    return {byte: chr(byte) if byte in kept else chr(next(spare)) for byte in range(256)}


def tokenizer_of(pieces: Iterable[bytes]) -> Tokenizer:
    """Its tokens are the reserved ones, all single bytes in order, then those of `pieces` that are longer, in order."""
    alphabet = letters()
    texts = [*RESERVED, *(alphabet[byte] for byte in range(256))]
    longer = dict.fromkeys("".join(alphabet[byte] for byte in piece) for piece in pieces if len(piece) > 1)
    model = Model(models.BPE(vocab={text: token for token, text in enumerate([*texts, *longer])}, merges=[]))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    model.decoder = decoders.ByteLevel()
    return Tokenizer(model)


def vocabulary_of(pieces: Sequence[bytes]) -> tuple[Vocabulary, list[int]]:
    """A vocabulary that has `pieces`, and their ids."""
    tokenizer = tokenizer_of(pieces)
    vocabulary = Vocabulary(tokenizer, tokenizer.vocab_size)
    ids = {piece: token for token, piece in enumerate(vocabulary.pieces(skip_special=True)) if piece}
    return vocabulary, [ids[piece] for piece in pieces]


def choice(token: int) -> Choice:
    """A token whose log-probability tells it from others."""
    return Choice(token=token, logprob=-float(token), top=((token, -float(token)),))


def ended(reason: Reason, generated: int, cached: int = 0) -> Ended:
    """The end of an answer."""
    timings = Timings(submitted=0, admitted=0, first_token=0, ended=0)
    return Ended(reason=reason, cached_tokens=cached, generated_tokens=generated, timings=timings)


def told(
    vocabulary: Vocabulary,
    ids: Sequence[int],
    options: TextOptions,
    *,
    prompt: Sequence[int] = (0,),
    scores: Sequence[Choice] = (),
    stop_tokens: Iterable[int] = (),
    min_tokens: int = 0,
    reason: Reason = Reason.LENGTH,
) -> list[Delta]:
    """What an answer of `ids` hands out, fed as the scheduler does it; `reason` ends it where nothing else did."""
    generation = Generation(
        request_id="r",
        prompt=tuple(prompt),
        parameters=SamplingParameters(),
        max_tokens=len(ids),
        stop_tokens=frozenset(stop_tokens),
        min_tokens=min_tokens,
    )
    deltas: list[Delta] = []
    answer = Answer(index=3, generation=generation, options=options, vocabulary=vocabulary, deliver=deltas.append)
    if scores:
        answer.scored(tuple(scores))
    for place, token in enumerate(ids):
        if answer.token(choice(token)):
            answer.ended(ended(Reason.STOP, place + 1))
            return deltas
    answer.ended(ended(reason, len(ids)))
    return deltas


def text_of(deltas: Iterable[Delta]) -> str:
    """All text of an answer."""
    return "".join(delta.text for delta in deltas)


def bytes_of(deltas: Iterable[Delta]) -> bytes:
    """The bytes of all tokens that are shown."""
    return b"".join(token.piece for delta in deltas for token in delta.tokens)
