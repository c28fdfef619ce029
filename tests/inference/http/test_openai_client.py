"""OpenAI's own client against every endpoint, streaming and not; what it hears is what the sums say."""

from __future__ import annotations

import math

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.inference.http.serving import END_OF_TEXT, NAME, Served, sums, text_of, tokenizer
from training.model.chat import Role, compose

ASKED: list[ChatCompletionMessageParam] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is 2 + 2?"},
]
END_OF_TURN = 4


def chat_answer(count: int) -> list[int]:
    """The tokens of an answer to ASKED."""
    turns = [(Role.SYSTEM, "Be brief."), (Role.USER, "What is 2 + 2?")]
    prompt = compose(tokenizer(), turns, generation_prompt=True)
    return sums(prompt, count, ends=(END_OF_TEXT, END_OF_TURN))


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [NAME]
    assert client.models.retrieve(NAME).created == 1_700_000_000
    with pytest.raises(openai.NotFoundError, match=r'The model \\"other\\" does not exist|The model "other"'):
        client.models.retrieve("other")


def test_a_chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=NAME, messages=ASKED, temperature=0, max_tokens=12)
    tokens = chat_answer(12)
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == text_of(tokens)
    assert answer.choices[0].finish_reason == ("length" if len(tokens) == 12 else "stop")
    assert answer.usage is not None
    assert answer.usage.completion_tokens == len(tokens)
    assert answer.system_fingerprint == "fp_sums"
    assert answer.id.startswith("chatcmpl-")


def test_a_chat_as_a_stream(client: openai.OpenAI) -> None:
    with client.chat.completions.create(
        model=NAME, messages=ASKED, temperature=0, max_tokens=12, stream=True
    ) as stream:
        chunks = list(stream)
    assert [chunk.choices[0].delta.role for chunk in chunks] == ["assistant"] + [None] * (len(chunks) - 1)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text_of(chat_answer(12))
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].choices[0].finish_reason == ("length" if len(chat_answer(12)) == 12 else "stop")
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_completion(client: openai.OpenAI) -> None:
    answer = client.completions.create(model=NAME, prompt="Once", temperature=0, max_tokens=20)
    assert answer.choices[0].text == text_of(sums("Once", 20))
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (4, len(sums("Once", 20)))


def test_several_prompts_and_answers(client: openai.OpenAI) -> None:
    """Prompt by prompt; of a seed, the draws of a prompt are 0 and 1."""
    answer = client.completions.create(model=NAME, prompt=["ab", "cd"], n=2, seed=7, max_tokens=6)
    said = [(choice.index, choice.text) for choice in answer.choices]
    assert said == [
        (index, text_of(sums(prompt, 6, temperature=1.0, seed=7, draw=draw)))
        for index, (prompt, draw) in enumerate([("ab", 0), ("ab", 1), ("cd", 0), ("cd", 1)])
    ]
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 4


def test_several_answers_as_one_stream(client: openai.OpenAI) -> None:
    texts = {0: "", 1: "", 2: ""}
    with client.completions.create(model=NAME, prompt="ab", n=3, seed=7, max_tokens=6, stream=True) as stream:
        for chunk in stream:
            texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == {draw: text_of(sums("ab", 6, temperature=1.0, seed=7, draw=draw)) for draw in range(3)}


def test_log_probabilities(client: openai.OpenAI) -> None:
    """Of the sums, the token in place d has the probability 2^-(d+1)."""
    answer = client.completions.create(model=NAME, prompt="ab", temperature=0, logprobs=2, max_tokens=3)
    said = answer.choices[0].logprobs
    assert said is not None
    assert said.token_logprobs == pytest.approx([-math.log(2)] * 3)
    assert said.tokens is not None
    assert len(said.tokens) == 3
    assert said.top_logprobs is not None
    assert sorted(said.top_logprobs[0].values()) == pytest.approx([-2 * math.log(2), -math.log(2)])


def test_a_kept_prefix_is_told(client: openai.OpenAI) -> None:
    prompt = list(range(5, 205))
    first = client.completions.create(model=NAME, prompt=prompt, temperature=0, max_tokens=4)
    second = client.completions.create(model=NAME, prompt=prompt, temperature=0, max_tokens=4)
    for answer, cached in ((first, 0), (second, 192)):
        assert answer.choices[0].text == text_of(sums(prompt, 4))
        assert answer.usage is not None
        assert answer.usage.prompt_tokens_details is not None
        assert answer.usage.prompt_tokens_details.cached_tokens == cached


def test_another_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.completions.create(model="other", prompt="x")
    assert refused.value.code == "model_not_found"


def test_tokens_and_back(served: Served) -> None:
    with served.client() as http:
        there = http.post("/tokenize", json={"model": NAME, "prompt": "Häuser"}).json()
        assert there["tokens"] == tokenizer().encode("Häuser")
        assert there["count"] == 7
        back = http.post("/detokenize", json={"model": NAME, "tokens": there["tokens"]}).json()
        assert back == {"prompt": "Häuser"}
