"""What `/metrics` says: names that gateways look for, values that a reader counts, a format that parses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from inference.http.metrics import BETWEEN_TOKENS, FIRST_TOKEN, LATENCY, Metrics, powers
from inference.testing import Call
from tests.inference.http.serving import Served, completion, engine_for, raw, request, serving, settings, until

LOOKED_FOR = {
    # By the Gateway API inference extension, llm-d, dashboards and load generators, as vLLM has them.
    "vllm:num_requests_running": "gauge",
    "vllm:num_requests_waiting": "gauge",
    "vllm:num_requests_waiting_by_reason": "gauge",
    "vllm:kv_cache_usage_perc": "gauge",
    "vllm:cache_config_info": "gauge",
    "vllm:prefix_cache_queries": "counter",
    "vllm:prefix_cache_hits": "counter",
    "vllm:num_preemptions": "counter",
    "vllm:prompt_tokens": "counter",
    "vllm:prompt_tokens_cached": "counter",
    "vllm:generation_tokens": "counter",
    "vllm:request_success": "counter",
    "vllm:iteration_tokens_total": "histogram",
    "vllm:time_to_first_token_seconds": "histogram",
    "vllm:inter_token_latency_seconds": "histogram",
    "vllm:request_time_per_output_token_seconds": "histogram",
    "vllm:e2e_request_latency_seconds": "histogram",
    "vllm:request_queue_time_seconds": "histogram",
    "vllm:request_prefill_time_seconds": "histogram",
    "vllm:request_decode_time_seconds": "histogram",
    "vllm:request_inference_time_seconds": "histogram",
    "vllm:request_prompt_tokens": "histogram",
    "vllm:request_generation_tokens": "histogram",
    "vllm:request_params_max_tokens": "histogram",
    "vllm:request_params_n": "histogram",
    "spotrail_state_slots": "gauge",
    "spotrail_state_slots_used": "gauge",
    "spotrail_state_bytes_per_sequence": "gauge",
    "spotrail_snapshot_bytes": "gauge",
    "spotrail_snapshot_count": "gauge",
    "spotrail_snapshot_hits": "counter",
    "spotrail_snapshot_misses": "counter",
    "spotrail_snapshot_evictions": "counter",
    "spotrail_snapshot_restores": "counter",
    "spotrail_snapshot_saved_tokens": "counter",
    "spotrail_decode_step_seconds": "histogram",
    "spotrail_server_phase": "gauge",
    "spotrail_http_responses": "counter",
}


@pytest.fixture(scope="module")
def asked() -> Iterator[Served]:
    """A server that was asked twice for 5 tokens behind the same 200, and once for two answers of 3."""
    with serving(settings(grid=64, prefill_tokens=64)) as server, server.client() as http:
        for _ in range(2):
            said = completion(list(range(5, 205)), max_tokens=5, ignore_eos=True)
            assert http.post("/v1/completions", json=said).status_code == 200
        said = completion("abc", max_tokens=3, n=2, seed=1, ignore_eos=True)
        assert http.post("/v1/completions", json={**said, "temperature": 1}).status_code == 200
        assert http.post("/v1/completions", json={}).status_code == 400
        yield server


def test_every_name_is_there_with_its_type_and_its_model(asked: Served) -> None:
    with asked.client() as http:
        answer = http.get("/metrics")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert {name: families[name].type for name in LOOKED_FOR if name in families} == LOOKED_FOR
    for name, family in families.items():
        assert family.documentation, name
        if name != "spotrail_http_responses" and not name.endswith("_created"):
            assert {sample.labels["model_name"] for sample in family.samples} == {"sums"}, name
    assert answer.headers["content-type"].startswith("text/plain; version=")


def test_the_format_is_that_of_prometheus(asked: Served) -> None:
    """As `promtool check metrics` has it: help and type before samples, histograms that rise to their count."""
    with asked.client() as http:
        text = http.get("/metrics").text
    assert text.endswith("\n")
    names = re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", name) for name in names)
    for family in text_string_to_metric_families(text):
        if family.type == "histogram":
            buckets = [sample.value for sample in family.samples if sample.name.endswith("_bucket")]
            counts = [sample.value for sample in family.samples if sample.name.endswith("_count")]
            assert buckets == sorted(buckets), family.name
            assert buckets[-1] == counts[0], family.name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vllm:prompt_tokens_total", 406),
        ("vllm:prompt_tokens_cached_total", 192),
        ("vllm:generation_tokens_total", 16),
        ("vllm:prefix_cache_queries_total", 406),
        ("vllm:prefix_cache_hits_total", 192),
        ("vllm:request_success_total", 4),
        ("vllm:time_to_first_token_seconds_count", 4),
        ("vllm:inter_token_latency_seconds_count", 12),
        ("vllm:request_time_per_output_token_seconds_count", 4),
        ("vllm:e2e_request_latency_seconds_count", 4),
        ("vllm:request_prompt_tokens_sum", 406),
        ("vllm:request_generation_tokens_sum", 16),
        ("vllm:request_params_max_tokens_sum", 16),
        ("vllm:request_params_n_sum", 4),
        # Read 200, 8, 3 and 3; decoded what comes behind the first token: 4, 4, 2 and 2.
        ("vllm:iteration_tokens_total_sum", 214 + 12),
        ("vllm:num_requests_running", 0),
        ("vllm:num_requests_waiting", 0),
        ("vllm:num_preemptions_total", 0),
        ("spotrail_state_slots", 4),
        ("spotrail_state_bytes_per_sequence", 1024),
        ("spotrail_snapshot_restores_total", 1),
        ("spotrail_snapshot_saved_tokens_total", 192),
    ],
)
def test_values_are_those_that_a_reader_counts(asked: Served, name: str, value: float) -> None:
    assert asked.metric(name) == value


def test_ends_are_told_apart(asked: Served) -> None:
    assert asked.metric("vllm:request_success_total", finished_reason="length") == 4
    assert asked.metric("vllm:request_success_total", finished_reason="stop") == 0
    assert asked.metric("spotrail_http_responses_total", path="/v1/completions", status="200") == 3
    assert asked.metric("spotrail_http_responses_total", path="/v1/completions", status="400") == 1
    assert asked.metric("spotrail_server_phase", phase="ready") == 1
    assert asked.metric("spotrail_server_phase") == 1


@pytest.mark.parametrize(("memory", "blocks"), [(1 << 20, 1024), (3000, 2), (1023, 0), (0, 0)])
def test_what_routers_by_prefix_go_by(memory: int, blocks: int) -> None:
    """Places are 64 tokens apart, and a state of this engine has 1,024 bytes."""
    with serving(settings(grid=64, cache_memory=memory)) as served:
        labels = {"block_size": "64", "num_gpu_blocks": str(blocks), "enable_prefix_caching": str(blocks > 0)}
        assert served.metric("vllm:cache_config_info", **labels) == 1


@pytest.mark.parametrize(("memory", "warns"), [(1023, True), (1024, False), (0, False)])
def test_kept_states_that_none_fits_are_told_of(memory: int, warns: bool) -> None:
    """A state of this engine has 1,024 bytes."""
    with serving(settings(grid=64, cache_memory=memory)) as served, served.client() as http:
        for _ in range(3):
            http.post("/v1/completions", json=completion(list(range(5, 205)), max_tokens=1))
        warnings = [line for line in served.said if line.startswith("warning: ")]
        if memory:
            assert served.metric("spotrail_snapshot_misses_total", reason="too_large") == (2 if warns else 0)
            assert served.metric("spotrail_snapshot_hits_total") == (0 if warns else 2)
    said = "warning: --cache-memory is 1,023 bytes, and one state of this model 1,024: none is ever kept"
    assert [line.startswith(said) for line in warnings] == ([True] if warns else [])


def test_gauges_are_those_of_now() -> None:
    """Two slots and three answers: usage is 1, one waits; a client that leaves is an abort."""
    said = settings(slots=2, cache_memory=0)
    with serving(said, engine=engine_for(said, delays={Call.DECODE: 0.002})) as served:
        clients = [raw(served) for _ in range(3)]
        body = json.dumps(completion("x", stream=True, max_tokens=4000, ignore_eos=True)).encode()
        for client in clients:
            client.sendall(request("/v1/completions", body))
        until(lambda: served.metric("vllm:num_requests_waiting") == 1)
        assert served.metric("vllm:kv_cache_usage_perc") == 1
        assert served.metric("spotrail_state_slots_used") == 2
        for client in clients:
            client.close()
        until(lambda: served.metric("vllm:request_success_total", finished_reason="abort") == 3)
        until(lambda: served.metric("spotrail_clients_left_total") == 3)
        assert served.metric("vllm:kv_cache_usage_perc") == 0


def test_paths_that_clients_make_up_are_one() -> None:
    with serving() as served, served.client() as http:
        for number in range(20):
            http.get(f"/made/up/{number}")
            http.get(f"/v1/models/{number}")
        assert served.metric("spotrail_http_responses_total", path="other", status="404") == 20
        assert served.metric("spotrail_http_responses_total", path="/v1/models/*", status="404") == 20


def test_a_name_that_needs_quoting_still_parses() -> None:
    text = Metrics('m"\\x', context=64).exposed().decode()
    models = {sample.labels.get("model_name") for f in text_string_to_metric_families(text) for sample in f.samples}
    assert models - {None} == {'m"\\x'}


def test_buckets() -> None:
    assert (FIRST_TOKEN[0], FIRST_TOKEN[-1], len(FIRST_TOKEN)) == (0.001, 2560.0, 22)
    assert (LATENCY[0], LATENCY[-1], len(LATENCY)) == (0.3, 7680.0, 21)
    assert (BETWEEN_TOKENS[0], BETWEEN_TOKENS[-1], len(BETWEEN_TOKENS)) == (0.01, 80.0, 19)
    assert powers(100) == (1, 2, 5, 10, 20, 50, 100)
    assert powers(64) == (1, 2, 5, 10, 20, 50)
