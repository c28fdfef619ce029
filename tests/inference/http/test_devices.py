"""A real server over several devices: its answers are those of one over one device, whoever asks, to its end."""

from __future__ import annotations

import os

# Before JAX is first used: the devices are counted then, and all tests over models have eight.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import jax
import pytest

from inference.assembly import assemble
from inference.exit_codes import ExitCode
from inference.settings import MIB, Settings
from tests.inference.http.serving import Served, events_in, serving, until
from training.export import write_export
from training.mixers.ssd import SsdConfig
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel
from training.model.tokenizer import train_tokenizer

SLOTS = 2
DEVICES = 3
AT_ONCE = 10
"""More than there are slots on all devices."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """For a server of a small export, on one device."""
    config = ModelConfig(
        vocab_size=300, d_model=16, n_layers=1, d_feed_forward=24, mixers=(SsdConfig(d_head=8, d_state=4, chunk=16),)
    )
    tokenizer = train_tokenizer(["to be or not to be, that is the question"] * 3, 300)
    model = LanguageModel.init(config, jax.random.key(5))
    folder = write_export(model, tokenizer.to_json(), tmp_path_factory.mktemp("export") / "hamlet").folder
    return Settings(
        weights=str(folder),
        port=0,
        devices=1,
        slots=SLOTS,
        context=1024,
        grid=64,
        prefill_tokens=64,
        cache_memory=MIB,
        drain_timeout=600,
    )


@contextmanager
def served(said: Settings) -> Iterator[Served]:
    """A server of the real engine, on a thread of this process."""
    told: list[str] = []
    with serving(said, assemble=lambda tell: assemble(said, tell, told.append), wait=False) as server:
        until(lambda: server.running.life.ready, 300)
        server.said.extend(told)
        yield server


def questions() -> list[Mapping[str, Any]]:
    """Prompts of 1 to 310 tokens, that share beginnings in groups; greedy and drawn, whole and streamed."""
    text = [random.Random(1).randrange(5, 300) for _ in range(300)]
    asked = []
    for number in range(24):
        own = random.Random(number)
        prompt = text[: 30 * (number % 11)] + [own.randrange(5, 300) for _ in range(1 + own.randrange(10))]
        more: dict[str, Any] = {"temperature": 0} if number % 2 else {"temperature": 0.9, "seed": number, "n": 2}
        stream = number % 3 == 0
        asked.append(
            {"model": "hamlet", "prompt": prompt, "max_tokens": 5 + number, "logprobs": 3, "stream": stream, **more}
        )
    return [{**body, "ignore_eos": True, "return_token_ids": True} for body in asked]


def answer(client: httpx.Client, body: Mapping[str, Any]) -> list[tuple[str, list[int], list[float], str]]:
    """Of each choice: text, tokens, log-probabilities, and why it ended."""
    response = client.post("/v1/completions", json=body)
    assert response.status_code == 200, response.text
    events = events_in(response.text) if body["stream"] else [response.json()]
    choices: dict[int, tuple[str, list[int], list[float], str]] = {}
    for event in events:
        for choice in event["choices"]:
            text, tokens, logprobs, reason = choices.get(choice["index"], ("", [], [], ""))
            scored = (choice.get("logprobs") or {}).get("token_logprobs") or []
            tokens = tokens + (choice.get("token_ids") or [])
            choices[choice["index"]] = (
                text + choice["text"],
                tokens,
                logprobs + scored,
                choice["finish_reason"] or reason,
            )
    return [choices[index] for index in sorted(choices)]


def test_answers_of_a_crowd_on_three_devices_are_those_of_one_and_none_is_lost_by_the_end(said: Settings) -> None:
    asked = questions()
    with served(said) as server, server.client() as client:
        wanted = [answer(client, body) for body in asked]
        fingerprint = client.post("/v1/completions", json=asked[1]).json()["system_fingerprint"]
        assert server.metric("spotrail_devices") == 1
    lengths = [len(tokens) for choices in wanted for _, tokens, _, _ in choices]
    assert lengths == [5 + number for number in range(24) for _ in range(1 if number % 2 else 2)]

    with served(replace(said, devices=DEVICES)) as server, server.client() as client:
        assert server.metric("spotrail_devices") == DEVICES
        assert server.metric("spotrail_state_slots") == DEVICES * SLOTS
        (memory,) = [line for line in server.said if line.startswith("memory: ")]
        assert "(2 slots of 1.0 KiB, and one that is never answered from) on each of 3 devices, kept" in memory
        assert client.post("/v1/completions", json=asked[1]).json()["system_fingerprint"] == fingerprint
        order = random.Random(3).sample(range(24), 24) * 2
        with ThreadPoolExecutor(AT_ONCE) as threads:
            got = list(threads.map(lambda number: answer(client, asked[number]), order))
        assert got == [wanted[number] for number in order]
        assert server.metric("spotrail_snapshot_restores_total") > 10
        service = server.running.front.service
        assert service is not None

        long = {**asked[1], "max_tokens": 600, "stream": True}
        with ThreadPoolExecutor(DEVICES * SLOTS) as threads:
            going = [threads.submit(answer, client, long) for _ in range(DEVICES * SLOTS)]
            until(lambda: service.scheduler.statistics().running == DEVICES * SLOTS)
            server.signal()
            ended = [each.result() for each in going]
        assert server.wait() is ExitCode.FINE
        assert ended == [ended[0]] * len(going)
        assert len(ended[0][0][1]) == 600
        assert ended[0][0][1][:6] == wanted[1][0][1]
        assert service.scheduler.statistics().engine_failures == 0
