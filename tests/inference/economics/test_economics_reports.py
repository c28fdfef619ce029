"""What is shown: the answer first, what linear attention does not win, strict JSON, a page that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from inference.economics.decoding import Machine
from inference.economics.html import report_html
from inference.economics.report import Plot, Report, Series
from inference.economics.svg import drawing
from inference.economics.text import report_lines
from inference.economics.wall_json import wall_json
from inference.economics.wall_report import wall_report
from inference.economics.weights_json import weights_json
from inference.economics.weights_report import weights_report
from inference.memory_wall import Wall
from inference.weights_plan import Plan
from policies.hardware.slices import shape

WallOf = Callable[..., Wall]
PlanOf = Callable[..., Plan]
ROOT = Path(__file__).parents[3]
HEAVY = ("jax", "jaxlib", "numpy", "equinox", "optax", "training")


def text(report: Report, width: int = 100) -> str:
    return "\n".join(line.plain for line in report_lines(report, width))


def words(report: Report) -> str:
    return " ".join(text(report).split())


def strictly(document: str) -> dict[str, Any]:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name}: a number that is no string")

    found: dict[str, Any] = json.loads(document, parse_float=refuse, parse_int=refuse, parse_constant=refuse)
    return found


def outline(node: Any) -> str:
    """The keys of a document in their order, as its documentation writes them: `a,b{c,d},e[]{f}`."""
    return ",".join(f"{name}{within(value)}" for name, value in node.items())


def within(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{outline(value)}}}"
    if isinstance(value, list):
        return "[]" + (within(value[0]) if value else "")
    return ""


def documented(module: str) -> str:
    """The indented part of the docstring without blanks and what stands in brackets."""
    text = sys.modules[module].__doc__ or ""
    return re.sub(r"\([^)]*\)|\s", "", "".join(re.findall(r"^    .*$", text, re.MULTILINE)))


def test_the_wall_begins_with_its_answer(wall_of: WallOf) -> None:
    lines = text(wall_report(wall_of())).splitlines()
    assert lines[0] == f"{'spotrail wall 1.3B':<44}v6e-1 · us-central1-b · on demand · prices of 2026-11-29"
    assert "At 1M tokens a request holds 24.8 MiB with 1.3B: 24 delta, and 48.0 GiB with softmax GQA-4" in lines[2]


@pytest.mark.parametrize(
    "said",
    [
        "wins no memory below 943 tokens (MLA 512+64), 531 tokens (softmax GQA-4), 133 tokens (softmax MHA-16)",
        "moves fewer bytes with it only from 1,885 tokens (MLA 512+64), 1,061 tokens (softmax GQA-4), 266 tokens",
        "below 11,477 tokens (MLA 512+64), 6,456 tokens (softmax GQA-4), 1,614 tokens (softmax MHA-16) it is decoded",
        "up to 21,158 tokens (MLA 512+64) and 26,448 tokens (softmax GQA-4) attention costs less than the weights do",
        "A hybrid still grows: at 1M tokens 6.02 GiB (hybrid 7:1 with softmax GQA-4), 12.0 GiB (hybrid 3:1",
        "upper bounds by bandwidth and operations alone",
        "What a state of 24.8 MiB recalls of a long text is limited by its size",
        "softmax GQA-4 6,778 no room no room no room",
        "1.3B: 24 delta 0.0250 0.0250 0.0250 0.0250",
        "--bandwidth 1,640 GB/s: bandwidth of the memory of a chip (https://docs.cloud.google.com/tpu/docs/v6e",
        "a chip costs 2.700000 USD an hour; on spot 0.600000, 0.222 times as much",
    ],
)
def test_what_the_wall_says(said: str, wall_of: WallOf) -> None:
    assert said in words(wall_report(wall_of()))


def test_a_softmax_model_is_told_what_linear_attention_would_hold(wall_of: WallOf) -> None:
    wall = wall_of(
        "parameters: 1.3B\nd_model: 2048\nn_layers: 24\nmixers: [{type: softmax, n_heads: 16, n_kv_heads: 4}]"
    )
    said = words(wall_report(wall))
    assert (
        "At 1M tokens a request holds 24.8 MiB with linear: 24 delta, and 48.0 GiB with model: 24 softmax GQA-4" in said
    )
    assert "wins no memory below 531 tokens (model: 24 softmax GQA-4)" in said


def test_more_chips_are_told_of(wall_of: WallOf) -> None:
    said = words(wall_report(wall_of("parameters: 70B\nd_model: 8192\nn_layers: 8\nmixers: [{type: ssd}]")))
    assert "The weights are 130 GiB, and v6e-1 has 26.8 GiB for them: at least 5 chips are needed (--shape)." in said
    said = words(wall_report(wall_of(machine=Machine(shape=shape("v6e-8")))))
    assert "8 chips share the work evenly and for nothing" in said


def test_no_price_is_said_and_no_dollars_are_shown(wall_of: WallOf) -> None:
    report = wall_report(wall_of(left_out=["tpu.v6e.chip"]))
    assert "no dollars: no on-demand price for tpu.v6e.chip in us-central1-b, us-central1 or global" in words(report)
    assert not any("per 1M" in table.title for table in report.tables)


def test_measured_tokens_stand_beside_the_bound(wall_of: WallOf) -> None:
    said = words(wall_report(wall_of(measured=[(Decimal(8843), 64, 4096)])))
    assert "64 requests at 4k 8,843 17,686 50.0 % 0.0848" in said
    assert "more than the bound" in words(wall_report(wall_of(measured=[(Decimal(20_000), 64, 4096)])))


@pytest.mark.parametrize("width", [48, 60, 76, 100, 140])
def test_no_line_is_wider_than_the_terminal(width: int, wall_of: WallOf, plan_of: PlanOf) -> None:
    name = "name: a-rather-long-name-of-a-model-that-somebody-chose\n"
    long = name + "parameters: 1.3B\nd_model: 2048\nn_layers: 24\nmixers: [{type: ssd}]"
    for report in (wall_report(wall_of(long)), weights_report(plan_of())):
        commands = {f"{lead} {step}" for step in report.next_steps for lead in (" Next:", "      ")}
        for line in report_lines(report, width):
            assert cell_len(line.plain) <= width or line.plain in commands or " " not in line.plain.strip()


def test_the_plan_begins_with_its_answer(plan_of: PlanOf) -> None:
    said = words(weights_report(plan_of()))
    assert "spotrail weights-plan 120 GiB 16 x v6e-8 · us-central1-b · spot · prices of 2026-11-29" in said
    assert re.search(r"Boot download is cheapest: [\d.]+ USD /month, 1 min 26 s a cold start; Hyperdisk ML is", said)
    assert "8.00 restarts of each replica a day, 1 of 16 replicas at once: 3,893 cold starts a month." in said


@pytest.mark.parametrize(
    "said",
    [
        r"Hyperdisk ML is cheaper than Boot download from [\d.]+ restarts of each replica a day on, with the",
        r"The volume has 2,\d+ MiB/s, which is the cheapest with the accelerators that wait for it \(of 400 to 2,400\)",
        r"USD of its [\d.]+ a month pay for the [\d.]+ % of the time in which nobody reads",
        r"Unset, Google provisions 3,024 MiB/s = 362.88 a month",
        r"A user of vLLM on TPU has the same three and would take Boot download, the cheapest: vllm serve gs://",
        r"vLLM with GCS FUSE instead: gcsfuse .* vllm serve /mnt/bucket/model --safetensors-load-strategy eager",
        r"Next: python -m inference --weights gs://BUCKET/model --source download",
        r"--fuse-rate 1,000 MiB/s: most that one VM reads through GCS FUSE \(assumed, between",
        r"volume throughput \(billed around the clock, read or not\)",
    ],
)
def test_what_the_plan_says(said: str, plan_of: PlanOf) -> None:
    assert re.search(said, words(weights_report(plan_of())))


def test_a_plan_without_a_price_says_which(plan_of: PlanOf) -> None:
    said = words(weights_report(plan_of(left_out=["disk.hyperdisk-ml.throughput"])))
    assert "Which is cheapest cannot be said, Hyperdisk ML lacks a price; of the others Boot download is" in said
    assert "no on-demand price for disk.hyperdisk-ml.throughput in us-central1-b" in said
    assert "total at least" in said


def test_a_plan_without_two_prices_says_so_of_both(plan_of: PlanOf) -> None:
    said = words(weights_report(plan_of(left_out=["disk.hyperdisk-ml.throughput", "storage.standard.class-b"])))
    assert re.search(r"Which is cheapest cannot be said, Hyperdisk ML and .* lack prices", said)


def test_a_throughput_that_was_given_is_set_beside_the_best(plan_of: PlanOf) -> None:
    said = words(weights_report(plan_of(throughput=400)))
    assert re.search(r"The volume has 400 MiB/s, and 2,\d+ would be the cheapest", said)


def test_the_keys_of_the_wall_are_those_that_are_documented(wall_of: WallOf) -> None:
    wall = wall_of(contexts=[4096], batches=[64], measured=[(Decimal(9000), 64, 4096)], left_out=["tpu.v6e.chip"])
    found = strictly(wall_json(wall))
    place = found["variants"][0]["contexts"][0]
    assert outline(place.pop("full")) == outline(place["steps"][0])
    assert outline(found) == documented(wall_json.__module__).replace(",full}", "}")


def test_the_keys_of_the_plan_are_those_that_are_documented(plan_of: PlanOf) -> None:
    found = strictly(weights_json(plan_of(throughput=2400)))
    lacking = strictly(weights_json(plan_of(left_out=["snapshot.standard.capacity"], size_bytes=800 * 2**30)))
    assert outline({**found, "missing": lacking["missing"]}) == documented(weights_json.__module__)
    assert (lacking["complete"], lacking["cheapest"]) == (False, None)
    (unpriced,) = (line for line in lacking["ways"][0]["lines"] if line["monthly"] is None)
    assert (unpriced["item"], unpriced["unit_price"]) == ("snapshot.standard.capacity", None)


def test_figures_of_the_wall_in_json(wall_of: WallOf) -> None:
    found = strictly(wall_json(wall_of(contexts=[4096], batches=[64])))
    first = found["variants"][0]["contexts"][0]
    assert (found["schema"], found["complete"], found["fresh"]) == ("spotrail.wall/1", True, True)
    assert (first["held_bytes"], first["most_requests"]) == ("26050560", "1005")
    # 2.6e9 + 64 x 2 x 26,050,560
    assert first["steps"][0]["bytes_moved"] == "5934471680"
    assert first["steps"][0]["tokens_per_second"].startswith("17686.494377")
    assert [gain["memory_tokens"] for gain in found["gains"] if gain["other"] == "gqa"] == ["531"]


def test_figures_of_the_plan_in_json(plan_of: PlanOf) -> None:
    found = strictly(weights_json(plan_of(throughput=1200)))
    assert (found["schema"], found["complete"], found["cheapest"]) == ("spotrail.weights-plan/1", True, "download")
    assert found["volume"]["unset_mibps"] == "3024"
    assert [way["start"]["seconds"] for way in found["ways"]] == ["102.40", "122.88", "86.016"]
    for way in found["ways"]:
        total = sum(Decimal(line["monthly"]) for line in way["lines"])
        assert abs(total - Decimal(way["monthly"])) < Decimal("1e-10")


class Outline(HTMLParser):
    """The tags of a page in their order, and what it would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded.extend(name for name, _ in attrs if name in ("src", "href", "style") or name.startswith("on"))


def test_a_page_needs_nothing_else(wall_of: WallOf, plan_of: PlanOf) -> None:
    for report in (wall_report(wall_of()), weights_report(plan_of())):
        page = report_html(report)
        outline = Outline(page)
        assert outline.loaded == []
        assert "script" not in outline.tags
        assert outline.tags.count("svg") == 2
        style = page.partition("<style>")[2].partition("</style>")[0]
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"default-src 'none'; style-src 'sha256-{digest}'" in page


def test_every_table_and_remark_is_on_the_page(wall_of: WallOf) -> None:
    report = wall_report(wall_of())
    page = report_html(report)
    for table in report.tables:
        assert f"<h2>{table.title}</h2>" in page
    for remark in report.remarks:
        assert remark.text in page


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=st.text(alphabet="<>/!-&;\"'{}%ab\u202e", min_size=1, max_size=30))
def test_no_name_becomes_html(name: str, plan_of: PlanOf) -> None:
    plot = Plot(
        title=name,
        x_label=name,
        y_label=name,
        series=(Series(name=name, points=((Fraction(1), Fraction(1)), (Fraction(10), Fraction(100)))),),
        x_text=lambda value: name,
        y_text=lambda value: name,
    )
    tags = ["polyline", "line", "text", "svg", "title"]
    elements = [element.tag for element in ElementTree.fromstring(drawing(plot)).iter()]
    assert set(elements) <= set(tags)
    assert elements.count("polyline") == 1


def test_lines_are_where_their_values_are() -> None:
    plot = Plot(
        title="",
        x_label="",
        y_label="",
        series=(
            Series(
                name="a",
                points=((Fraction(1), Fraction(1)), (Fraction(10), Fraction(10)), (Fraction(100), Fraction(100))),
            ),
        ),
        x_text=str,
        y_text=str,
    )
    (found,) = (each for each in ElementTree.fromstring(drawing(plot)).iter("polyline"))
    points = [tuple(map(float, pair.split(","))) for pair in found.attrib["points"].split()]
    # Equal steps of the logarithm: the middle one is in the middle.
    assert points[1] == pytest.approx(((points[0][0] + points[2][0]) / 2, (points[0][1] + points[2][1]) / 2), abs=0.11)
    assert points[0][0] < points[2][0]
    assert points[0][1] > points[2][1]


def test_a_plot_of_one_value_is_drawn() -> None:
    series = Series(name="flat", points=((Fraction(2), Fraction(5)), (Fraction(2), Fraction(5))))
    plot = Plot(title="", x_label="", y_label="", series=(series,), x_text=str, y_text=str)
    assert ElementTree.fromstring(drawing(plot)).tag == "svg"


def test_economics_load_without_the_heavy_half() -> None:
    names = sorted(f"inference.economics.{path.stem}" for path in (ROOT / "inference" / "economics").glob("[a-z]*.py"))
    assert len(names) > 10
    code = (
        "import importlib, sys\n"
        f"for name in {[*names, 'inference.memory_wall', 'inference.weights_plan']!r}: importlib.import_module(name)\n"
        f"print(sorted({{name.partition('.')[0] for name in sys.modules}} & set({HEAVY!r})))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True, timeout=120
    )
    assert ran.stdout == "[]\n"
