"""The alert queries, asked of Prometheus itself: what fires, what does not, and what a gap does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import pytest

from infra.plan.alerts import chips_beyond, guard_findings, guard_silent, idle_volume
from infra.plan.promql import metric_name, selector, window
from tests.infra.alerts.promtool import fires, silent

MIB = 1024 * 1024
READ = 'compute_googleapis_com:instance_disk_read_bytes_count{monitored_resource="gce_instance",device_name="vol",'
CHIPS = "compute_googleapis_com:instance_tpu_active_chips"
GUARD = "custom_googleapis_com:spotrail_"
IDLE = idle_volume("vol", 60 * MIB, 6)
SILENT = guard_silent("dev", 1)


def reader(host: str) -> str:
    return f'{READ}instance_id="{host}"}}'


def rate(mibps: int, minutes: int) -> str:
    """A counter that grows by `mibps` MiB/s, a point a minute."""
    return f"0+{mibps * MIB * 60}x{minutes}"


def gauge(name: str, stack: str = "dev") -> str:
    return f'{GUARD}{name}{{monitored_resource="global",stack="{stack}"}}'


class TestIdleVolume:
    def test_six_hours_of_nothing(self, tmp_path: Path) -> None:
        fires(tmp_path, IDLE, {reader("1"): "0x480"}, [400, 480], [{}])

    def test_not_before_there_are_enough_hours(self, tmp_path: Path) -> None:
        silent(tmp_path, IDLE, {reader("1"): "0x480"}, [60, 200, 300])

    def test_a_volume_that_is_read(self, tmp_path: Path) -> None:
        silent(tmp_path, IDLE, {reader("1"): rate(61, 480)}, [400, 480])

    def test_just_below_the_bound(self, tmp_path: Path) -> None:
        fires(tmp_path, IDLE, {reader("1"): rate(59, 480)}, [400, 480], [{}])

    def test_readers_that_are_each_below_it_are_above_it_together(self, tmp_path: Path) -> None:
        silent(tmp_path, IDLE, {reader("1"): rate(31, 480), reader("2"): rate(31, 480)}, [400, 480])

    def test_one_burst_in_the_window(self, tmp_path: Path) -> None:
        burst = f"0x200 {70 * MIB * 60}+{70 * MIB * 60}x30 {31 * 70 * MIB * 60}x400"
        silent(tmp_path, IDLE, {reader("1"): burst}, [400, 480, 560])

    def test_it_is_told_when_the_burst_has_left_the_window(self, tmp_path: Path) -> None:
        burst = f"0x200 {70 * MIB * 60}+{70 * MIB * 60}x30 {31 * 70 * MIB * 60}x600"
        fires(tmp_path, IDLE, {reader("1"): burst}, [640, 700], [{}])

    def test_a_gap_does_not_start_the_clock_again(self, tmp_path: Path) -> None:
        fires(tmp_path, IDLE, {reader("1"): "0x240 _x25 0x240"}, [420, 480], [{}])

    def test_too_many_gaps_are_no_idleness(self, tmp_path: Path) -> None:
        silent(tmp_path, IDLE, {reader("1"): "0x120 _x120 0x240"}, [400, 480])

    def test_no_series_is_no_idleness(self, tmp_path: Path) -> None:
        silent(tmp_path, IDLE, {}, [480])

    def test_a_host_that_comes_is_no_jump(self, tmp_path: Path) -> None:
        """Its counter starts anywhere; a sum before the rate would count all of it at once."""
        came = f"_x240 {5000 * MIB}x240"
        fires(tmp_path, IDLE, {reader("1"): "0x480", reader("2"): came}, [480], [{}])

    def test_a_counter_that_starts_again_is_no_read(self, tmp_path: Path) -> None:
        fires(tmp_path, IDLE, {reader("1"): f"{5000 * MIB}x240 0x240"}, [480], [{}])

    def test_another_volume_is_another_matter(self, tmp_path: Path) -> None:
        other = reader("1").replace('"vol"', '"other"')
        fires(tmp_path, IDLE, {reader("1"): "0x480", other: rate(900, 480)}, [480], [{}])


class TestChips:
    def test_more_than_declared_for_ten_minutes(self, tmp_path: Path) -> None:
        series = {f'{CHIPS}{{instance_id="{host}"}}': "4x60" for host in "abc"}
        fires(tmp_path, chips_beyond(8), series, [12, 60], [{}])
        silent(tmp_path, chips_beyond(12), series, [12, 60])

    def test_a_slice_that_replaces_another_is_none_too_many(self, tmp_path: Path) -> None:
        silent(tmp_path, chips_beyond(8), {f"{CHIPS}{{i='1'}}": "8x20 0x60", f"{CHIPS}{{i='2'}}": "_x18 8x60"}, [30])

    def test_a_gap_changes_nothing(self, tmp_path: Path) -> None:
        fires(tmp_path, chips_beyond(8), {CHIPS: "16x20 _x6 16x20"}, [22, 30, 40], [{}])

    def test_a_minute_is_not_enough(self, tmp_path: Path) -> None:
        silent(tmp_path, chips_beyond(8), {CHIPS: "8x20 16x3 8x20"}, [21, 22, 30])

    def test_a_new_series_has_to_last(self, tmp_path: Path) -> None:
        silent(tmp_path, chips_beyond(8), {CHIPS: "_x20 16x4"}, [21, 24])


HOURLY = "1 _x59 "
"""One point an hour, as the guard writes them."""


class TestSilentGuard:
    LABELS: ClassVar = {"monitored_resource": "global", "stack": "dev"}

    def test_one_that_runs_every_hour(self, tmp_path: Path) -> None:
        silent(tmp_path, SILENT, {gauge("last_run"): HOURLY * 10}, [60, 250, 600])

    def test_one_that_has_stopped(self, tmp_path: Path) -> None:
        stopped = {gauge("last_run"): "1 _x800"}
        silent(tmp_path, SILENT, stopped, [120, 200])
        fires(tmp_path, SILENT, stopped, [220, 500], [self.LABELS])

    def test_a_new_stack_has_time_for_its_first_run(self, tmp_path: Path) -> None:
        silent(tmp_path, SILENT, {gauge("last_run"): "_x60 " + HOURLY * 5}, [60, 90, 300])

    def test_one_that_never_ran(self, tmp_path: Path) -> None:
        silent(tmp_path, SILENT, {}, [80])
        fires(tmp_path, SILENT, {}, [100], [self.LABELS])

    def test_one_run_may_fail(self, tmp_path: Path) -> None:
        silent(tmp_path, SILENT, {gauge("last_run"): HOURLY + "_x60 " + HOURLY * 3}, [119, 125, 300])

    def test_the_guard_of_another_stack_does_not_count(self, tmp_path: Path) -> None:
        fires(tmp_path, SILENT, {gauge("last_run", "prod"): HOURLY * 10}, [300], [self.LABELS])

    def test_a_guard_that_runs_seldom_has_longer(self, tmp_path: Path) -> None:
        seldom = guard_silent("dev", 6)
        silent(tmp_path, seldom, {gauge("last_run"): "1 _x2000"}, [720, 1100])
        fires(tmp_path, seldom, {gauge("last_run"): "1 _x2000"}, [1120], [self.LABELS])


class TestGuardFindings:
    FOUND = guard_findings("dev", 1, 50)

    def labels(self, name: str) -> dict[str, str]:
        return {"monitored_resource": "global", "stack": "dev", "finding": name}

    @pytest.mark.parametrize(
        "name", ["idle_dollars_per_month", "unattached_volumes", "stale_heartbeats", "expired_slices", "unseen_parts"]
    )
    def test_each_kind_is_an_incident_of_its_own(self, tmp_path: Path, name: str) -> None:
        fires(tmp_path, self.FOUND, {gauge(name): "51 _x59 " * 4}, [10, 50, 200], [self.labels(name)])

    def test_two_kinds_are_two_incidents(self, tmp_path: Path) -> None:
        series = {gauge("unattached_volumes"): "2 _x59 " * 2, gauge("expired_slices"): "1 _x59 " * 2}
        both = [self.labels("expired_slices"), self.labels("unattached_volumes")]
        fires(tmp_path, self.FOUND, series, [30], both)

    def test_little_money_is_no_incident(self, tmp_path: Path) -> None:
        silent(tmp_path, self.FOUND, {gauge("idle_dollars_per_month"): "50 _x59 " * 4}, [10, 200])

    def test_nothing_found(self, tmp_path: Path) -> None:
        series = {gauge("unattached_volumes"): "0 _x59 " * 4, gauge("unseen_parts"): "0 _x59 " * 4}
        silent(tmp_path, self.FOUND, series, [10, 200])

    def test_it_ends_when_the_next_run_finds_nothing(self, tmp_path: Path) -> None:
        series = {gauge("unattached_volumes"): "1 _x59 0 _x59"}
        fires(tmp_path, self.FOUND, series, [50], [self.labels("unattached_volumes")])
        silent(tmp_path, self.FOUND, series, [70])

    def test_a_guard_that_says_nothing_any_more_has_found_nothing(self, tmp_path: Path) -> None:
        """That it says nothing is the other alert."""
        silent(tmp_path, self.FOUND, {gauge("unattached_volumes"): "1 _x400"}, [130, 300])

    def test_what_is_written_of_another_stack(self, tmp_path: Path) -> None:
        silent(tmp_path, self.FOUND, {gauge("expired_slices", "prod"): "3x100"}, [50])


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (
            "compute.googleapis.com/instance/disk/read_bytes_count",
            "compute_googleapis_com:instance_disk_read_bytes_count",
        ),
        ("custom.googleapis.com/spotrail/last_run", "custom_googleapis_com:spotrail_last_run"),
        ("kubernetes.io/container/cpu/limit_cores", "kubernetes_io:container_cpu_limit_cores"),
        ("logging.googleapis.com/user/my-metric", "logging_googleapis_com:user_my_metric"),
    ],
)
def test_names_are_those_of_the_mapping(metric: str, name: str) -> None:
    assert metric_name(metric) == name


def test_a_selector_quotes_what_it_is_given() -> None:
    assert selector("a.b/c", device_name='a"b\\c') == 'a_b:c{device_name="a\\"b\\\\c"}'
    assert selector("a.b/c") == "a_b:c"


def test_durations() -> None:
    assert [window(minutes) for minutes in (1, 60, 90, 1380)] == ["1m", "1h", "90m", "23h"]


@pytest.mark.parametrize("hours", [1, 6, 23])
def test_no_query_looks_back_further_than_a_day_and_an_hour(hours: int) -> None:
    """Cloud Monitoring bounds both; a day and an hour is what its other conditions may look back."""
    for alert in (IDLE, idle_volume("v", 1, hours), guard_silent("s", 6), guard_findings("s", 6, 1), chips_beyond(1)):
        spans = re.findall(r"\[(\d+)([hm])", alert.query)
        longest = max(int(number) * (60 if unit == "h" else 1) for number, unit in spans)
        assert longest + alert.hold_minutes <= 25 * 60
