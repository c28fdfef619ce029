"""Every kind of damage is found, marked and stepped over; a fault at any write leaves a store to go on from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.checkpoint.faulty_store import DeadFrom, FaultyStore
from tests.training.checkpoint.trees import assert_same, small_tree
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.discovery import find_newest_valid
from training.checkpoint.errors import ResumeRefusedError, SaveFailedError, StoreError
from training.checkpoint.local_store import LocalStore
from training.checkpoint.restoring import restore
from training.checkpoint.retention import Retention

NEWEST = "00000002-1"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steps 1 and 2 of a run."""
    root = tmp_path_factory.mktemp("pristine") / "checkpoints"
    with Checkpointer(root, run="r") as checkpointer:
        for step in (1, 2):
            checkpointer.save(step, small_tree(step), {"step": step})
    return root


def copied(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "copy"))


def objects(root: Path) -> list[Path]:
    return sorted(path for path in (root / NEWEST).rglob("*") if path.is_file())


def flip(path: Path, at: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


CLASSES = ["MANIFEST.json", "OWNER.json", "PART-0.json", "zarr.json", "values", "checksum"]


def place(root: Path, kind: str) -> tuple[Path, int, int]:
    """A file of that class, and the bytes of it that are of the class."""
    if kind in ("values", "checksum"):
        chunk = next(path for path in objects(root) if path.name == "c.0.0")
        size = chunk.stat().st_size
        return (chunk, 0, size - 4) if kind == "values" else (chunk, size - 4, size)
    path = next(path for path in objects(root) if path.name == kind)
    return path, 0, path.stat().st_size


@pytest.mark.parametrize("kind", CLASSES)
def test_a_flipped_bit_of_any_class_is_found(kind: str, pristine: Path, tmp_path: Path) -> None:
    root = copied(pristine, tmp_path)
    path, start, stop = place(root, kind)
    whole = path.read_bytes()
    for number, at in enumerate(sorted({start, (start + stop) // 2, stop - 1, *range(start, stop, 37)})):
        flip(path, at, number % 8)
        found = find_newest_valid(root, "r", quarantine=False)
        assert found is not None
        assert found.step == 1, (kind, at)
        assert len(found.skipped) == 1
        assert NEWEST in found.skipped[0]
        path.write_bytes(whole)
    again = find_newest_valid(root, "r")
    assert again is not None
    assert (again.step, again.skipped) == (2, ())


@pytest.mark.parametrize("damage", ["missing", "empty", "shorter", "longer", "of the step before"])
@pytest.mark.parametrize("kind", CLASSES[:-1])
def test_any_object_that_is_not_whole_is_found(kind: str, damage: str, pristine: Path, tmp_path: Path) -> None:
    root = copied(pristine, tmp_path)
    path, _, _ = place(root, kind)
    before = root / "00000001-1" / path.relative_to(root / NEWEST)
    changes: dict[str, Callable[[], object]] = {
        "missing": path.unlink,
        "empty": lambda: path.write_bytes(b""),
        "shorter": lambda: path.write_bytes(path.read_bytes()[:-1]),
        "longer": lambda: path.write_bytes(path.read_bytes() + b"\0"),
        "of the step before": lambda: path.write_bytes(before.read_bytes()),
    }
    changes[damage]()
    found = find_newest_valid(root, "r")
    assert found is not None
    if kind == "zarr.json" and damage == "of the step before":
        assert found.step == 2  # they are the same
        return
    assert found.step == 1
    assert NEWEST in found.skipped[0]
    assert_same(restore(found, small_tree(1))[0], small_tree(1))


def test_the_damaged_one_is_marked_and_the_run_goes_on(pristine: Path, tmp_path: Path) -> None:
    root = copied(pristine, tmp_path)
    path, _, _ = place(root, "values")
    flip(path, 5)
    damaged = {path: path.read_bytes() for path in objects(root)}
    assert find_newest_valid(root, "r") is not None
    mark = json.loads((root / NEWEST / "QUARANTINED.json").read_text())
    assert mark["problems"] == [f"{NEWEST}/host-0/00002.w/c.0.0 is damaged: its crc32c is another"]
    again = find_newest_valid(root, "r")
    assert again is not None
    assert again.skipped == (f"{root}/{NEWEST} is quarantined; see QUARANTINED.json there",)
    with Checkpointer(root, run="r", retention=Retention(keep_last=1)) as checkpointer:
        for step in (2, 3):
            checkpointer.save(step, small_tree(step), {})
    assert {path: path.read_bytes() for path in damaged} == damaged, "nothing of it was deleted or changed"
    newest = find_newest_valid(root, "r")
    assert newest is not None
    assert (newest.prefix, newest.skipped) == ("00000003-2", ())


def test_nothing_starts_over_in_silence(pristine: Path, tmp_path: Path) -> None:
    root = copied(pristine, tmp_path)
    for step in ("00000001-1", NEWEST):
        (root / step / "PART-0.json").unlink()
    with pytest.raises(ResumeRefusedError, match=r"no valid checkpoint is left(.|\n)*00000002-1(.|\n)*00000001-1"):
        find_newest_valid(root, "r")
    assert find_newest_valid(root, "r", start_over=True) is None
    with Checkpointer(root, run="r", start_over=True) as checkpointer:
        assert find_newest_valid(root, "r") is None, "started over on purpose, and stopped before the first save"
        checkpointer.save(1, small_tree(10), {})
    found = find_newest_valid(root, "r")
    assert found is not None
    assert found.prefix == "00000001-2"
    assert (root / NEWEST / "MANIFEST.json").exists()


def test_a_disk_that_fails_is_not_taken_for_damage(pristine: Path, tmp_path: Path) -> None:
    class Broken(FaultyStore):
        def get(self, key: str) -> bytes:
            if key.endswith("PART-0.json"):
                raise StoreError("Input/output error")
            return super().get(key)

    with pytest.raises(StoreError, match="Input/output error"):
        find_newest_valid(Broken(LocalStore(copied(pristine, tmp_path))), "r")


KEEP_ONE = Retention(keep_last=1)


def saved_once_more(store: FaultyStore) -> None:
    with Checkpointer(store, run="r", retention=KEEP_ONE, threads=1) as checkpointer:
        checkpointer.save(3, small_tree(3), {})


class Torn(DeadFrom):
    """The first write that does not come through has left a file that is not in its place yet."""

    def __init__(self, first: int, root: Path) -> None:
        super().__init__(first)
        self.root = root

    def __call__(self, number: int, verb: str, key: str) -> None:
        if number == self.first and verb == "create":
            (self.root / key).parent.mkdir(parents=True, exist_ok=True)
            (self.root / key).with_name(f".{Path(key).name}.1234").write_bytes(b"half of")
        super().__call__(number, verb, key)


@pytest.mark.parametrize("effect", ["before", "after"])
def test_a_fault_at_every_write_leaves_the_last_complete_one(effect: str, pristine: Path, tmp_path: Path) -> None:
    """In the middle of a write, which leaves a file that is not in its place yet, or after it, with its answer lost.

    A run owns what it has made where it was made, so every case begins in the same folder.
    """
    root = pristine.parent / effect
    with Checkpointer(root, run="r") as checkpointer:
        for step in (1, 2):
            checkpointer.save(step, small_tree(step), {"step": step})
    shutil.copytree(root, tmp_path / "before")
    straight = FaultyStore(LocalStore(root))
    saved_once_more(straight)
    log = straight.log
    assert {"OWNER.json", "PART-0.json", "MANIFEST.json", "LEASE-r.json", "c.0.0"} <= {
        key.rsplit("/", 1)[-1] for _, key in log
    }
    assert sum(verb == "delete" for verb, _ in log) > 10
    committed = log.index(("create", "00000003-2/MANIFEST.json"))
    noted = log.index(("replace", "LEASE-r.json"), committed)
    for boundary, (verb, key) in enumerate(log):
        shutil.rmtree(root)
        shutil.copytree(tmp_path / "before", root)
        store = FaultyStore(LocalStore(root))
        setattr(store, effect, DeadFrom(boundary) if effect == "after" else Torn(boundary, root))
        if boundary > noted:
            saved_once_more(store)  # what cannot be deleted is no failure of a save
        else:
            with pytest.raises((StoreError, SaveFailedError), match="No space left"):
                saved_once_more(store)
        complete = boundary > committed or (boundary == committed and effect == "after")
        found = find_newest_valid(root, "r")
        assert found is not None
        assert found.step == (3 if complete else 2), (effect, verb, key)
        assert_same(restore(found, small_tree(0))[0], small_tree(found.step))
        with Checkpointer(root, run="r", retention=KEEP_ONE) as checkpointer:
            checkpointer.save(4, small_tree(4), {})
        last = find_newest_valid(root, "r")
        assert last is not None
        assert (last.step, last.skipped) == (4, ()), (effect, verb, key)
        left = {path.name for path in root.iterdir() if path.is_dir()}
        if effect == "before" and (verb, key) == ("create", "00000003-2/OWNER.json"):
            left.remove("00000003-2")  # whose it is cannot be proved, so nobody deletes it
        assert left == {last.prefix}, f"the next attempt clears away what was left: {effect}, {verb}, {key}"
