"""What `/metrics` says, in the names of vLLM where a gateway or a dashboard looks for them, and in ours beside them.

What the names of vLLM mean of a model whose state has a fixed size:

- `vllm:kv_cache_usage_perc` is busy slots / slots, 0 to 1: there is no cache of keys and values that fills up. What
  spreads requests by it spreads them by free slots, as is meant.
- `vllm:prefix_cache_queries_total` and `_hits_total` count tokens: of prompts for which a kept state was looked for,
  and those of them that were not read since one was found. `vllm:prompt_tokens_total` counts both, of every prompt that
  got a slot.
- `vllm:cache_config_info` speaks of kept states: `block_size` is the grid, in whole numbers of which a prompt is found,
  and `num_gpu_blocks` how many states there is room for (in host memory: the label is that of vLLM).
- `vllm:num_preemptions_total` stays 0: an answer that has a slot keeps it.
- Everything by request is by answer: one with `n` 3 counts three times.

What a gauge says is asked for when it is read; nothing is copied between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from inference.http.lifecycle import Phase
from inference.scheduling.generation import Ended, Generation, Reason
from inference.scheduling.turns import Statistics
from inference.state_cache.state_cache import CacheStatistics

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
FIRST_TOKEN: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
    *(160.0, 640.0, 2560.0),
)
BETWEEN_TOKENS: Final = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
LATENCY: Final = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0),
    *(1920.0, 7680.0),
)
A_TURN: Final = tuple(float(1 << power) for power in (0, *range(3, 15)))
STEP: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
FINISHED: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        Reason.STOP: "stop",
        Reason.LENGTH: "length",
        Reason.CANCELLED: "abort",
        Reason.CUT_OFF: "abort",
        Reason.FAILED: "error",
    }
)
"""In the words of vLLM."""


def powers(most: int) -> tuple[float, ...]:
    """1, 2, 5, 10, 20, 50 ... up to `most`: the buckets of a count of tokens."""
    found = []
    power = 1
    while power <= most:
        found += [float(step * power) for step in (1, 2, 5) if step * power <= most]
        power *= 10
    return tuple(found)


@final
@dataclass(frozen=True, kw_only=True)
class Reading:
    """A number that is asked for when it is read."""

    name: str
    """Without the `_total` of a counter."""
    help: str
    """What it is."""
    counts: bool = False
    """Whether it only rises."""
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Beside the name of the model."""
    value: float
    """What it is now."""


@final
class Metrics:
    """The numbers of one server, in a registry of its own."""

    def __init__(self, model_name: str, *, context: int) -> None:
        self._model: Final = {"model_name": model_name}
        self._registry: Final = CollectorRegistry()
        self.responses: Final = Counter(
            "spotrail_http_responses", "Responses, by route and status", ["path", "status"], registry=self._registry
        )
        self.clients_left: Final = self._counter("spotrail_clients_left", "Clients that left before their answer ended")
        self.clients_stalled: Final = self._counter(
            "spotrail_clients_stalled", "Clients that were dropped, since they took nothing of their answer"
        )
        self.iteration_tokens: Final = self._histogram(
            "vllm:iteration_tokens_total", "Tokens of a turn, read and chosen", A_TURN
        )
        self.decode_step: Final = self._histogram("spotrail_decode_step_seconds", "Decoding of one token each", STEP)
        self.between_tokens: Final = self._histogram(
            "vllm:inter_token_latency_seconds", "Between two tokens of an answer", BETWEEN_TOKENS
        )
        self.first_token: Final = self._histogram(
            "vllm:time_to_first_token_seconds", "From submission to the first token", FIRST_TOKEN
        )
        self._success: Final = Counter(
            "vllm:request_success",
            "Answers that ended, by why",
            ["model_name", "finished_reason"],
            registry=self._registry,
        )
        for reason in FINISHED.values():
            self._success.labels(**self._model, finished_reason=reason)
        self._by_answer: Final = self._latencies()
        counts = powers(context)
        self._prompts: Final = self._histogram("vllm:request_prompt_tokens", "Tokens of a prompt", counts)
        self._answers: Final = self._histogram("vllm:request_generation_tokens", "Tokens of an answer", counts)
        self._most: Final = self._histogram("vllm:request_params_max_tokens", "What was asked at most", counts)
        self.choices: Final = self._histogram("vllm:request_params_n", "Answers to one prompt", (1, 2, 5, 10, 20))

    def watch(self, readings: Callable[[], Sequence[Reading]]) -> None:
        """Ask `readings` too, each time that the numbers are read."""
        self._registry.register(_Readings(self._model, readings))

    def exposed(self) -> bytes:
        """All of them, in the text format of Prometheus."""
        return generate_latest(self._registry)

    def ended(self, generation: Generation, ended: Ended) -> None:
        """Count an answer that is over."""
        times = ended.timings
        self._success.labels(**self._model, finished_reason=FINISHED[ended.reason]).inc()
        spans = {
            "e2e_request_latency": (times.submitted, times.ended),
            "request_queue_time": (times.submitted, times.admitted),
            "request_prefill_time": (times.admitted, times.first_token),
            "request_decode_time": (times.first_token, times.ended),
            "request_inference_time": (times.admitted, times.ended),
        }
        for name, (start, end) in spans.items():
            if start is not None and end is not None:
                self._by_answer[name].observe(end - start)
        if times.first_token is not None and ended.generated_tokens > 1:
            decoding = times.ended - times.first_token
            self._by_answer["request_time_per_output_token"].observe(decoding / (ended.generated_tokens - 1))
        self._most.observe(generation.max_tokens)
        self._answers.observe(ended.generated_tokens)
        self._prompts.observe(len(generation.prompt))

    def _latencies(self) -> Mapping[str, Histogram]:
        said = {
            "e2e_request_latency": ("From submission to the end", LATENCY),
            "request_queue_time": ("Waiting for a slot", LATENCY),
            "request_prefill_time": ("From a slot to the first token", LATENCY),
            "request_decode_time": ("From the first token to the end", LATENCY),
            "request_inference_time": ("From a slot to the end", LATENCY),
            "request_time_per_output_token": ("Between two tokens, the mean of an answer", BETWEEN_TOKENS),
        }
        return {name: self._histogram(f"vllm:{name}_seconds", what, at) for name, (what, at) in said.items()}

    def _counter(self, name: str, what: str) -> Counter:
        return Counter(name, what, list(self._model), registry=self._registry).labels(**self._model)

    def _histogram(self, name: str, what: str, buckets: Sequence[float]) -> Histogram:
        made = Histogram(name, what, list(self._model), registry=self._registry, buckets=buckets)
        return made.labels(**self._model)


def phases(current: Phase) -> list[Reading]:
    """Of the life of the server: 1 of the phase that it is in, 0 of the others."""
    return [
        Reading(
            name="spotrail_server_phase",
            help="1 of what the server is in",
            labels={"phase": phase.value},
            value=float(phase is current),
        )
        for phase in Phase
    ]


def of_settings(*, grid: int, cache_memory: int, state_bytes: int) -> Reading:
    """What a router that sends prompts to where their beginnings are kept must know, as vLLM says it: 1, and labels."""
    return Reading(
        name="vllm:cache_config_info",
        help="1; how many states are kept, and how many tokens there are between two places where one may be",
        labels={
            "block_size": str(grid),
            "num_gpu_blocks": str(cache_memory // state_bytes),
            "enable_prefix_caching": str(cache_memory >= state_bytes),
        },
        value=1,
    )


def of_scheduler(said: Statistics, *, state_bytes: int) -> list[Reading]:
    """What the scheduler says of itself, and of its kept states where it has a cache."""
    cached = said.cache
    return [
        Reading(name="vllm:num_requests_running", help="Answers in slots", value=said.running),
        Reading(name="vllm:num_requests_waiting", help="Answers without a slot", value=said.waiting),
        Reading(
            name="vllm:num_requests_waiting_by_reason",
            help="Answers without a slot, by why: none is free",
            labels={"reason": "capacity"},
            value=said.waiting,
        ),
        Reading(name="vllm:kv_cache_usage_perc", help="Busy slots / slots, 0 to 1", value=said.running / said.slots),
        _count("vllm:prompt_tokens", "Tokens of prompts that got a slot, kept ones among them", said.prompt_tokens),
        _count("vllm:prompt_tokens_cached", "Of those, the ones from a kept state", said.cached_tokens),
        _count("vllm:generation_tokens", "Tokens that were chosen", said.generated_tokens),
        _count("vllm:num_preemptions", "Answers that lost their slot: none ever does", 0),
        _count("vllm:prefix_cache_queries", "Tokens of prompts looked up", cached.queried_tokens if cached else 0),
        _count("vllm:prefix_cache_hits", "Tokens of prompts found", cached.saved_tokens if cached else 0),
        Reading(name="spotrail_state_slots", help="Answers that may be made at once", value=said.slots),
        Reading(name="spotrail_state_slots_used", help="Answers that are being made", value=said.running),
        Reading(name="spotrail_state_bytes_per_sequence", help="Of a state, whatever the context", value=state_bytes),
        _count("spotrail_engine_failures", "Times that the engine raised", said.engine_failures),
        _count("spotrail_answers_refused", "Answers not taken, for the queue was full", said.refused),
        *(of_cache(cached, restores=said.restores) if cached else ()),
    ]


def of_cache(said: CacheStatistics, *, restores: int) -> list[Reading]:
    """What the kept states say."""
    return [
        Reading(name="spotrail_snapshot_bytes", help="Of kept states", value=said.nbytes),
        Reading(name="spotrail_snapshot_capacity_bytes", help="Kept states may take", value=said.capacity),
        Reading(name="spotrail_snapshot_count", help="Kept states", value=said.count),
        _count("spotrail_snapshot_hits", "Prompts for which a kept state was found", said.hits),
        *(
            Reading(
                name="spotrail_snapshot_misses",
                help="Prompts for which none was, by why",
                counts=True,
                labels={"reason": reason.value},
                value=count,
            )
            for reason, count in said.misses.items()
        ),
        _count("spotrail_snapshot_evictions", "Kept states that made room", said.evictions),
        _count("spotrail_snapshot_restores", "Answers that began from a kept state", restores),
        _count("spotrail_snapshot_saved_tokens", "Tokens of prompts that were not read", said.saved_tokens),
    ]


def _count(name: str, what: str, value: int) -> Reading:
    return Reading(name=name, help=what, counts=True, value=value)


@final
class _Readings(Collector):
    """Asks for numbers, and groups those of one name."""

    def __init__(self, model: Mapping[str, str], ask: Callable[[], Sequence[Reading]]) -> None:
        self._model: Final = model
        self._ask: Final = ask

    def collect(self) -> Iterator[Metric]:
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for reading in self._ask():
            labels = {**self._model, **reading.labels}
            if reading.name not in families:
                kind = CounterMetricFamily if reading.counts else GaugeMetricFamily
                families[reading.name] = kind(reading.name, reading.help, labels=list(labels))
            families[reading.name].add_metric(list(labels.values()), reading.value)
        yield from families.values()
