"""One server for the tests that only ask."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.inference.http.serving import Served, serving, settings


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """With four slots and a context of 256 tokens."""
    with serving(settings(context=256, grid=64, prefill_tokens=64)) as server:
        yield server


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[openai.OpenAI]:
    """OpenAI's own."""
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as made:
        yield made
