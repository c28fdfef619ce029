"""Nobody deletes or overwrites what is not his, and nobody goes back in silence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.training.checkpoint.faulty_store import FaultyStore
from tests.training.checkpoint.trees import small_tree
from training.checkpoint import discovery, inspection, lease
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.discovery import find_newest_valid
from training.checkpoint.errors import CheckpointError, LeaseLostError, SaveFailedError, StoreError
from training.checkpoint.local_store import LocalStore
from training.checkpoint.names import parsed
from training.checkpoint.retention import Retention
from training.checkpoint.store import AbstractStore


def save(root: Path, *steps: int, run: str = "r", keep: int = 10) -> None:
    with Checkpointer(root, run=run, retention=Retention(keep_last=keep)) as checkpointer:
        for step in steps:
            checkpointer.save(step, small_tree(step), {})


def folders(root: Path) -> set[str]:
    return {path.name for path in root.iterdir() if path.is_dir()}


def test_a_cleaner_deletes_only_what_its_run_has_provably_made(tmp_path: Path) -> None:
    save(tmp_path, 100)
    save(tmp_path, 50, run="other")
    (tmp_path / "00000050-2/MANIFEST.json").unlink()  # a copy by a tool that left the marker out
    save(tmp_path, 200)
    (tmp_path / "00000200-3/MANIFEST.json").unlink()
    lease_file = tmp_path / "LEASE-r.json"
    held = lease.read_lease(LocalStore(tmp_path), "r")
    assert held is not None
    lease.commit(LocalStore(tmp_path), held, drop=frozenset({"00000200-3"}))  # never committed, that is
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("mine")
    (tmp_path / "best").symlink_to("00000100-1")
    (tmp_path / "200.tmp").mkdir()
    shutil.copytree(tmp_path / "00000200-3", tmp_path / "00000150-9")  # another name than its owner says
    with Checkpointer(tmp_path, run="r") as checkpointer:
        checkpointer.wait()
    assert folders(tmp_path) == {"00000100-1", "00000050-2", "00000150-9", "notes", "best", "200.tmp"}
    assert lease_file.exists()
    found = find_newest_valid(tmp_path, "r")
    assert found is not None
    assert found.step == 100
    assert [line.split(str(tmp_path))[-1] for line in found.skipped] == ["/00000150-9 is incomplete or foreign"]
    assert find_newest_valid(tmp_path, "other", start_over=True) is None


def test_a_folder_that_was_moved_is_restored_from_and_not_cleaned(tmp_path: Path) -> None:
    save(tmp_path / "old", 1, 2, 3)
    (tmp_path / "old").rename(tmp_path / "new")
    save(tmp_path / "new", 4, keep=1)
    assert folders(tmp_path / "new") == {"00000001-1", "00000002-1", "00000003-1", "00000004-2"}


def test_runs_in_one_folder_keep_to_themselves(tmp_path: Path) -> None:
    save(tmp_path, 1, 2, 3, run="a")
    save(tmp_path, 7, 8, run="b", keep=1)
    assert folders(tmp_path) == {"00000001-1", "00000002-1", "00000003-1", "00000008-2"}
    assert [found.step for run in "ab" if (found := find_newest_valid(tmp_path, run))] == [3, 8]
    assert find_newest_valid(tmp_path, "c") is None
    found = find_newest_valid(tmp_path, "a")
    assert found is not None
    assert found.skipped == (), "those of others are nothing to be told"
    newest = find_newest_valid(tmp_path, None)
    assert newest is not None
    assert newest.manifest.run == "b"


def test_runs_in_one_folder_save_the_same_step(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, run="a") as a, Checkpointer(tmp_path, run="b") as b:  # neither has saved before
        for value, checkpointer in enumerate((a, b)):
            checkpointer.save(5, small_tree(value), {})
    save(tmp_path, 5, run="a")
    save(tmp_path, 5, run="c")
    assert folders(tmp_path) == {"00000005-1", "00000005-2", "00000005-3", "00000005-4"}
    for run, number in (("a", 3), ("b", 2), ("c", 4)):
        found = find_newest_valid(tmp_path, run)
        assert found is not None
        assert (found.prefix, found.manifest.run, found.manifest.epoch) == (f"00000005-{number}", run, number)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_runs_that_begin_at_once_are_not_numbered_alike(moment: str, tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    others: list[Checkpointer] = []

    def begin(number: int, verb: str, key: str) -> None:
        if key == "LEASE-a.json" and not others:
            others.append(Checkpointer(tmp_path, run="b"))

    setattr(store, moment, begin)
    with Checkpointer(store, run="a") as a, others[0] as b:
        assert sorted([a.attempt, b.attempt]) == ["1", "2"]
        for value, checkpointer in enumerate((a, b)):
            checkpointer.save(5, small_tree(value), {})
    assert folders(tmp_path) == {"00000005-1", "00000005-2"}


def test_a_number_is_greater_than_all_that_a_folder_knows(tmp_path: Path) -> None:
    with Checkpointer(tmp_path, run="b", attempt="7") as named:
        named.save(1, small_tree(1), {})
    (tmp_path / "LEASE-b.json").unlink()
    (tmp_path / f"00000001-{'9' * 40}").mkdir()
    (tmp_path / "LEASE-c.json").write_text("damaged")
    for run, number in (("a", "8"), ("b", "9"), ("c", "10"), ("a", "11")):
        with Checkpointer(tmp_path, run=run) as checkpointer:
            assert checkpointer.attempt == number


def test_of_any_run_none_is_taken_that_its_own_has_set_aside(tmp_path: Path) -> None:
    save(tmp_path, 1, 9)
    with Checkpointer(tmp_path, run="r", start_over=True) as checkpointer:
        checkpointer.save(2, small_tree(2), {})
    found = find_newest_valid(tmp_path, None)
    assert found is not None
    assert found.prefix == "00000002-2"


class Counted(FaultyStore):
    """Says whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


def test_what_is_opened_is_closed_and_what_was_open_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "a", 1)
    save(tmp_path / "b", 2)
    opened: list[Counted] = []

    def opening(root: str | Path | AbstractStore) -> AbstractStore:
        if isinstance(root, AbstractStore):
            return root
        opened.append(Counted(LocalStore(Path(root))))
        return opened[-1]

    for module in (discovery, inspection):
        monkeypatch.setattr(module, "open_store", opening)
    found = find_newest_valid([tmp_path / "a", tmp_path / "b"], "r")
    assert found is not None
    assert [store.closed for store in opened] == [True, False], "what was found is read from by who looked for it"
    assert find_newest_valid(tmp_path / "a", "none") is None
    inspection.listing(tmp_path / "a")
    inspection.verify(tmp_path / "a")
    inspection.remove(tmp_path / "a", ["00000001-1"], force=True)
    assert [store.closed for store in opened[2:]] == [True] * 4
    mine = Counted(LocalStore(tmp_path / "b"))
    inspection.listing(mine)
    assert find_newest_valid(mine, "none") is None
    assert not mine.closed


def test_retention_over_attempts(tmp_path: Path) -> None:
    save(tmp_path, 980, 990, 1000, keep=2)
    with Checkpointer(tmp_path, run="r", retention=Retention(keep_last=2, keep_every=1000)) as checkpointer:
        for step in range(1010, 1210, 10):
            checkpointer.save(step, small_tree(step), {})
    assert folders(tmp_path) == {"00001000-1", "00001190-2", "00001200-2"}


def test_a_zombie_commits_nothing_once_the_next_attempt_has_begun(tmp_path: Path) -> None:
    zombie = Checkpointer(tmp_path, run="r")
    zombie.save(100, small_tree(100), {})
    zombie.wait()
    with Checkpointer(tmp_path, run="r") as heir:
        zombie.save(300, small_tree(300), {})
        with pytest.raises(LeaseLostError, match=r"attempt 1 of run r has lost its lease \(attempt 2 of epoch 2"):
            zombie.wait()
        with pytest.raises(LeaseLostError):
            zombie.commit_now(301, small_tree(301), {}, deadline_seconds=10)
        heir.save(200, small_tree(200), {})
    zombie.close()
    found = find_newest_valid(tmp_path, "r")
    assert found is not None
    assert found.prefix == "00000200-2"


def test_a_zombie_is_stopped_between_its_arrays_and_its_manifest(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path))
    heirs = []

    def inherit(number: int, verb: str, key: str) -> None:
        if key == "00000300-1/PART-0.json":
            heirs.append(Checkpointer(tmp_path, run="r"))

    store.before = inherit
    zombie = Checkpointer(store, run="r")
    zombie.save(300, small_tree(300), {})
    with pytest.raises(LeaseLostError):
        zombie.close()
    assert not (tmp_path / "00000300-1/MANIFEST.json").exists()
    heirs[0].close()


def test_two_processes_under_one_attempt_do_not_mix(tmp_path: Path) -> None:
    save(tmp_path, 1)
    with Checkpointer(tmp_path, run="r", attempt="1") as second:
        second.save(1, small_tree(99), {})
        with pytest.raises(SaveFailedError, match=r"00000001-1/OWNER.json is there already with other bytes"):
            second.wait()
    found = find_newest_valid(tmp_path, "r")
    assert found is not None
    assert found.manifest.epoch == 1


def test_a_lost_lease_file_makes_no_attempt_begin_again_at_one(tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    for content in (None, b"{}", b"\xff"):
        path = tmp_path / "LEASE-r.json"
        path.unlink() if content is None else path.write_bytes(content)
        with Checkpointer(tmp_path, run="r") as checkpointer:
            assert checkpointer.attempt == "3"
            checkpointer.wait()
        held = lease.read_lease(LocalStore(tmp_path), "r")
        assert held is not None
        assert held.committed == ("00000001-1", "00000002-2"), "what earlier attempts committed is taken over"
        assert find_newest_valid(tmp_path, "r") is not None


def test_of_two_roots_the_newest_of_both_is_taken(tmp_path: Path) -> None:
    us, eu = tmp_path / "us", tmp_path / "eu"
    save(us, 100, 200)
    save(eu, 150)
    for roots in ([us, eu], [eu, us]):
        found = find_newest_valid(roots, "r")
        assert found is not None
        assert found.url == f"{us}/00000200-1"


def test_a_root_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    save(tmp_path / "eu", 150)

    class Away(FaultyStore):
        def folders(self) -> tuple[str, ...]:
            raise StoreError(f"{self.url} cannot be listed: it is away")

    away = Away(LocalStore(tmp_path / "us"))
    with pytest.raises(StoreError, match=r"us cannot be listed: it is away"):
        find_newest_valid([tmp_path / "eu", away], "r")


def test_a_listing_that_lags_behind_hides_nothing(tmp_path: Path) -> None:
    save(tmp_path, 100, 200)
    store = FaultyStore(LocalStore(tmp_path))
    store.listed = lambda folders: tuple(name for name in folders if "200" not in name)
    found = find_newest_valid(store, "r")
    assert found is not None
    assert found.step == 200
    with Checkpointer(store, run="r", retention=Retention(keep_last=1)) as checkpointer:
        checkpointer.save(300, small_tree(300), {})
    assert folders(tmp_path) == {"00000300-2"}


def test_a_committed_one_that_is_gone_is_missed(tmp_path: Path) -> None:
    save(tmp_path, 100, 200)
    shutil.rmtree(tmp_path / "00000200-1")
    found = find_newest_valid(tmp_path, "r", quarantine=False)
    assert found is not None
    assert found.step == 100
    assert found.skipped == (f"{tmp_path}/00000200-1: it was committed, and its manifest is missing",)


def test_attempts_are_told_apart_by_number(tmp_path: Path) -> None:
    for attempt in range(1, 11):
        with Checkpointer(tmp_path, run="r") as checkpointer:
            assert checkpointer.attempt == str(attempt)
            if attempt in (2, 10):
                checkpointer.save(5, small_tree(attempt), {})
    found = find_newest_valid(tmp_path, "r")
    assert found is not None
    assert found.prefix == "00000005-10"


@pytest.mark.parametrize("name", ["200.tmp", "notes", "0000100-1", "00000100", "00000100-", "000000100-1", "a-1"])
def test_what_is_no_name_of_a_checkpoint(name: str) -> None:
    assert parsed(name) is None


@pytest.mark.parametrize(
    ("run", "attempt"),
    [("a/b", None), ("", None), (".", None), ("..", None), ("r", "a/b"), ("r", "-x"), ("r", "x" * 41)],
)
def test_names_that_make_no_folder(run: str, attempt: str | None, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"use 1 to (63|40) letters"):
        Checkpointer(tmp_path, run=run, attempt=attempt)
