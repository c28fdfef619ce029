"""Whole runs in processes of their own: what they leave behind, and that a kill changes nothing of it."""

from __future__ import annotations

import json
import math
import re
import signal
import time
from pathlib import Path

import pytest
import yaml

from tests.training.small_run import STEPS, SmallRun, small_config, write_text
from training.assembly import assemble
from training.config import read_run
from training.config_loading import override
from training.data.prepare import Recipe, prepare
from training.errors import TrainingError

KILLS = (3, 8, 17)
"""Steps after which a run is killed: before its first checkpoint, between two, and in the rotation of Kron."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    recipe = Recipe(vocab_size=300, sequence_length=16, validation=0.2)
    prepare(write_text(folder), folder / "rows", recipe=recipe)
    return folder / "rows"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def straight(data: Path, compiled: Path, tmp_path_factory: pytest.TempPathFactory) -> SmallRun:
    run = SmallRun.make(tmp_path_factory.mktemp("straight") / "run", small_config(data), compiled)
    code, said = run.finish()
    assert code == 0, said
    return run


def test_a_run_leaves_a_line_a_step_and_a_last_one(straight: SmallRun) -> None:
    lines = straight.lines()
    assert [line.get("step") for line in lines] == [*range(1, STEPS + 1), None]
    assert straight.final()["step"] == STEPS
    assert lines[STEPS - 1]["loss"] < lines[0]["loss"] < 2 * math.log(300)
    assert [line["step"] for line in lines[:-1] if line["validation_loss"] is not None] == [10, 20, STEPS]


def test_the_learning_rate_is_a_function_of_the_updates_made(straight: SmallRun) -> None:
    rates = [line["learning_rate"] for line in straight.lines()[:-1]]
    assert rates[:4] == pytest.approx([0.001, 0.002, 0.003, 0.004])
    cosine = [0.0004 + 0.0036 * (1 + math.cos(math.pi * n / (STEPS - 4))) / 2 for n in range(STEPS - 4)]
    assert rates[4:] == pytest.approx(cosine, rel=1e-5)


def test_a_run_says_what_it_was(straight: SmallRun) -> None:
    config = yaml.safe_load((straight.run_dir / "config.yaml").read_text())
    assert config["model"]["vocab_size"] == 300
    assert config["optim"]["b1"] == 0.95
    heartbeat = json.loads((straight.run_dir / "checkpoints" / "heartbeat.json").read_text())
    assert {name: heartbeat[name] for name in ("run", "attempt", "step")} == {"run": "small", "attempt": 1} | {
        "step": STEPS
    }


def test_a_finished_run_does_nothing_and_says_so(straight: SmallRun) -> None:
    before = straight.lines()
    code, said = straight.finish()
    assert code == 0, said
    assert "resume: BITWISE from step 24" in said
    place = straight.run_dir / "checkpoints"
    loss = before[STEPS - 1]["loss"]
    assert said.splitlines()[-2:] == [
        f"there was nothing left to do: step 24, loss {loss:.3f}",
        f"  Next: python -m training export {place} export/",
    ]
    assert straight.lines()[:-1] == before[:-1]
    assert straight.final() == before[-1]["final"]


def test_a_run_that_is_killed_again_and_again_ends_in_the_same_bits(
    straight: SmallRun, data: Path, compiled: Path, tmp_path: Path
) -> None:
    run = SmallRun.make(tmp_path / "killed", small_config(data), compiled)
    for step in KILLS:
        process = run.start()
        run.wait_for_step(step, process)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
    code, said = run.finish()
    assert code == 0, said
    assert "BITWISE" in said
    assert run.final() == straight.final()
    assert [line.get("step") for line in run.lines()] == [line.get("step") for line in straight.lines()]
    told = [[line.get(name) for name in ("step", "loss", "learning_rate")] for line in run.lines()]
    assert told == [[line.get(name) for name in ("step", "loss", "learning_rate")] for line in straight.lines()]


def test_every_step_can_be_gone_on_from(straight: SmallRun, data: Path, compiled: Path, tmp_path: Path) -> None:
    """By another process than the one that saved it, through momentum, rotation, annealing and decay."""
    saved = {"every": 1, "keep": {"keep_last": STEPS}}
    run = SmallRun.make(tmp_path / "saved", small_config(data, checkpoint=saved), compiled)
    code, said = run.finish()
    assert code == 0, said
    assert run.final() == straight.final()
    told, wrong = run.module("tests.training.every_cut", str(run.config), str(run.run_dir)).communicate(timeout=300)
    assert told.split() == [str(step) for step in range(1, STEPS + 1)], f"{told}{wrong}"


def test_a_preempted_run_commits_its_last_step_and_goes_on_from_it(
    straight: SmallRun, data: Path, compiled: Path, tmp_path: Path
) -> None:
    run = SmallRun.make(tmp_path / "preempted", small_config(data), compiled)
    process = run.start()
    run.wait_for_step(7, process)
    process.terminate()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 6, said
    last = max(line["step"] for line in run.lines())
    assert f"preempted: step {last} committed in" in said
    code, said = run.finish()
    assert code == 0, said
    assert f"resume: BITWISE from step {last}" in said
    assert run.final() == straight.final()


def test_a_notice_while_everything_is_imported_is_taken(data: Path, compiled: Path, tmp_path: Path) -> None:
    run = SmallRun.make(tmp_path / "early", small_config(data), compiled)
    process = run.start()
    run.wait_until_it_listens(process)
    process.terminate()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 6, said
    assert "preempted: before the first step; the same command resumes" in said
    assert not list((run.run_dir / "checkpoints").glob("0*"))


def test_a_notice_while_the_validation_text_is_read_ends_the_reading(compiled: Path, tmp_path: Path) -> None:
    recipe = Recipe(vocab_size=300, sequence_length=16, validation=0.5)
    prepare(write_text(tmp_path, lines=5_000), tmp_path / "rows", recipe=recipe)
    looks = {"validate_every": 3, "validation_batches": 10**9, "sample_every": 0, "tensorboard": False}
    run = SmallRun.make(tmp_path / "looking", small_config(tmp_path / "rows", log=looks), compiled)
    process = run.start()
    run.wait_for_step(2, process)
    time.sleep(1)
    process.terminate()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 6, said
    assert "preempted: step 3 committed in" in said
    assert [line["validation_loss"] for line in run.lines()] == [None] * 3


def test_ctrl_c_says_what_stands_and_loses_none_of_it(
    straight: SmallRun, data: Path, compiled: Path, tmp_path: Path
) -> None:
    run = SmallRun.make(tmp_path / "stopped", small_config(data), compiled)
    process = run.start()
    run.wait_for_step(12, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    found = re.search(r"stopped after step (\d+); the checkpoint of step (\d+) stands, and the same command", said)
    assert found is not None, said
    assert int(found[2]) == int(found[1]) // 5 * 5
    assert (run.run_dir / f"checkpoints/{int(found[2]):08d}-1/MANIFEST.json").exists()
    code, said = run.finish()
    assert (code, f"BITWISE from step {found[2]}" in said) == (0, True), said
    assert run.final() == straight.final()


def test_ctrl_c_after_the_notice_of_a_preemption_changes_nothing(data: Path, compiled: Path, tmp_path: Path) -> None:
    run = SmallRun.make(tmp_path / "both", small_config(data, steps=100_000), compiled)
    process = run.start()
    run.wait_for_step(12, process)
    process.terminate()
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 6, said
    assert re.search(r"preempted: (step \d+ committed|every step is in the checkpoint of step \d+)", said)


def test_a_second_notice_in_the_middle_of_a_save_harms_nothing(
    straight: SmallRun, data: Path, compiled: Path, tmp_path: Path
) -> None:
    run = SmallRun.make(tmp_path / "twice", small_config(data), compiled)
    process = run.start()
    run.wait_for_step(5, process)  # a save begins behind this line
    process.terminate()
    time.sleep(0.05)
    process.terminate()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 6, said
    last = max(line["step"] for line in run.lines())
    code, said = run.finish()
    assert code == 0, said
    assert f"resume: BITWISE from step {last}" in said
    assert run.final() == straight.final()


def test_a_machine_without_memory_is_no_preemption(data: Path, compiled: Path, tmp_path: Path) -> None:
    config = small_config(data, optim={"type": "adamw"})
    config["model"] |= {"d_model": 2_000_000}
    run = SmallRun.make(tmp_path / "huge", config, compiled)
    code, said = run.finish()
    assert code == 1, said
    assert "error: out of memory: " in said
    assert "Traceback" not in said


def test_a_damaged_checkpoint_is_stepped_over(straight: SmallRun, data: Path, compiled: Path, tmp_path: Path) -> None:
    run = SmallRun.make(tmp_path / "damaged", small_config(data), compiled)
    process = run.start()
    run.wait_for_step(12, process)
    process.terminate()
    process.communicate(timeout=120)
    newest = max((run.run_dir / "checkpoints").glob("0*"))
    victim = max(
        (path for path in (newest / "host-0").rglob("*") if path.is_file()), key=lambda each: each.stat().st_size
    )
    body = bytearray(victim.read_bytes())
    body[len(body) // 2] ^= 1
    victim.write_bytes(body)
    code, said = run.finish()
    assert code == 0, said
    assert "stepped over" in said
    assert "resume: BITWISE from step 10" in said
    assert run.final() == straight.final()


def test_another_run_is_no_resume(straight: SmallRun) -> None:
    before = (straight.run_dir / "config.yaml").read_text()
    code, said = straight.finish("--set", "learning.weight_decay=0.2")
    assert code == 7
    assert "learning.weight_decay was 0.1, and is 0.2" in said
    assert "--fresh" in said
    code, said = straight.finish("--set", "model.d_model=32", "--allow-changes")
    assert code == 7
    assert "is of another model or optimizer" in said
    assert (straight.run_dir / "config.yaml").read_text() == before


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("name=other", "name was small there, and is other now"),
        ("checkpoint.root=elsewhere", "checkpoint.root was not set there, and is elsewhere now"),
    ],
)
def test_a_folder_does_not_begin_again_in_silence(straight: SmallRun, assignment: str, message: str) -> None:
    before = straight.lines()
    code, said = straight.finish("--set", assignment)
    assert code == 7
    assert message in said
    assert straight.lines() == before


def test_a_change_on_purpose_is_remembered(data: Path, compiled: Path, tmp_path: Path) -> None:
    run = SmallRun.make(tmp_path / "changed", small_config(data, optim={"type": "adamw"}, steps=5), compiled)
    assert run.finish()[0] == 0
    code, said = run.finish("--set", "steps=10", "--allow-changes")
    assert code == 0, said
    assert "resume: CHANGED from step 5" in said
    assert "steps was 5, and is 10" in said
    code, said = run.finish("--set", "steps=10")
    assert code == 0, said
    assert "resume: BITWISE from step 10" in said
    assert "not the bits of a straight run: CHANGED at step 5" in said


def test_steps_that_are_not_finite_stop_a_run(data: Path, compiled: Path, tmp_path: Path) -> None:
    wild = {"rate": 1e30, "warmup_steps": 0, "clip_norm": None}
    config = small_config(data, optim={"type": "adamw"}, learning=wild, skips_in_a_row=3)
    run = SmallRun.make(tmp_path / "diverged", config, compiled)
    code, said = run.finish()
    assert code == 8, said
    assert "diverged: 3 steps in a row" in said
    assert "the last of them step 4; there is no checkpoint yet. Lower learning.rate" in said
    assert [line["skipped"] for line in run.lines()][-3:] == [1, 2, 3]
    assert all(line["gradient_norm"] is None for line in run.lines()[-3:])


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["stpes=3"], "stpes is no field of a run; did you mean steps?"),
        (["batch.size=3", "batch.accumulate=2"], "accumulate is 2, which does not divide size, 3"),
        (["data.sources.0.path=/nowhere"], "/nowhere"),
        (["model.vocab_size=5"], "model.vocab_size is 5, and the data have 300 tokens"),
        (["learning.warmup_steps=99", "batch.size=8"], "the peak is never reached"),
        (["mesh.fsdp=3"], "there are 8"),
        (["batch.size=4"], "4 is no multiple of 8"),
        (["name=../x"], "name is '../x'"),
        (["name=.."], "name is '..'"),
        (["steps=2147483648"], "steps is 2147483648"),
        (["log.prompt="], "log.prompt is empty, not text"),
        (["checkpoint.keep.keep_last=0"], "keep_last is 0"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_computed(data: Path, assignments: list[str], message: str) -> None:
    plain = small_config(data)
    for assignment in assignments:
        override(plain, assignment)
    with pytest.raises(TrainingError, match=re.escape(message)):
        assemble(read_run(plain, "run.yaml")[0])


def test_a_mistake_is_one_message(data: Path, compiled: Path, tmp_path: Path) -> None:
    run = SmallRun.make(tmp_path / "wrong", small_config(data), compiled)
    code, said = run.finish("--set", "optim.type=adam")
    assert code == 2
    assert said == f"error: {run.config}: optim.type is 'adam', not one of kron, adamw, muon; did you mean adamw?\n"
    assert not run.run_dir.exists()
