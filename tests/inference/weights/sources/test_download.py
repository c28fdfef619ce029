"""Downloads of models that are there, and what is said of those that are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inference.errors import ServingError
from inference.weights.sources.kinds import SourceKind
from inference.weights.sources.progress import DownloadProgress, Stage
from inference.weights.sources.transfer import Limits
from tests.google_cloud.object_serving import Storage
from tests.inference.weights.sources.stored import (
    MODEL,
    PART,
    PATIENT,
    content_of,
    download,
    manifest,
    media_calls,
    noise,
    put,
    upload,
    with_manifest,
)

EXPORT = with_manifest(MODEL)
WEIGHTS = "model.safetensors"


@pytest.mark.parametrize("part", [PART, 10 * PART + 777, 1 << 30])
@pytest.mark.parametrize("workers", [1, 5])
def test_a_model_is_here_byte_by_byte(storage: Storage, cache: Path, part: int, workers: int) -> None:
    upload(storage, EXPORT)
    got = download(cache, limits=Limits(part_bytes=part, workers=workers, patience=PATIENT), verify=True)
    assert content_of(got.folder) == EXPORT
    assert got.kind is SourceKind.DOWNLOAD
    assert (got.bytes, got.fetched, got.warnings) == (total := sum(map(len, EXPORT.values())), total, ())
    assert got.rate == got.fetched / got.seconds > 0
    parts = sum(-(-len(content) // part) for content in EXPORT.values())
    assert media_calls(storage) == parts + 1  # the manifest is read before, too
    assert [path.name for path in cache.iterdir() if path.suffix != ".lock"] == [got.folder.name]


def test_the_second_time_nothing_is_fetched(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    first = download(cache)
    calls = media_calls(storage)
    again = download(cache)
    assert (again.folder, again.fetched, again.rate) == (first.folder, 0, 0.0)
    assert media_calls(storage) == calls


def test_progress_goes_from_nothing_to_all(storage: Storage, cache: Path) -> None:
    upload(storage, EXPORT)
    told: list[DownloadProgress] = []
    got = download(cache, verify=True, progress=told.append)
    assert told[0] == DownloadProgress(stage=Stage.LISTING, subject="gs://models/llama/v1")
    came = [each for each in told if each.stage is Stage.DOWNLOADING]
    assert [each.done for each in came] == sorted(each.done for each in came)
    assert (came[-1].done, came[-1].total, came[-1].fetched) == (got.bytes, got.bytes, got.fetched)
    assert told[-1].stage is Stage.VERIFYING
    assert re.fullmatch(r"downloading gs://models/llama/v1: 0\.00 of 0\.00 GiB, \d+\.\d\d GiB/s", str(came[-1]))


def test_a_model_that_is_uploaded_anew_is_another_entry(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    old = download(cache)
    put(storage, f"llama/v1/{WEIGHTS}", noise(PART, 7))
    new = download(cache)
    assert new.folder != old.folder
    assert content_of(old.folder) == MODEL
    assert content_of(new.folder) == {**MODEL, WEIGHTS: noise(PART, 7)}


def test_without_a_manifest_everything_comes_with_its_folders(storage: Storage, cache: Path) -> None:
    files = {**MODEL, "original/params.json": b"{}", "Ein Name ä%2F+?#.txt": b"x"}
    upload(storage, files)
    upload(storage, {"": b"", "original/": b""})  # what consoles make of folders
    upload(storage, MODEL, "llama/v10/")
    assert content_of(download(cache).folder) == files


def test_with_a_manifest_what_it_does_not_name_stays(storage: Storage, cache: Path) -> None:
    upload(storage, EXPORT)
    upload(storage, {"../../evil": b"x", "optimizer.bin": b"x"})
    got = download(cache)
    assert content_of(got.folder) == EXPORT
    assert got.warnings == (
        "gs://models/llama/v1/MANIFEST.json does not name ../../evil, optimizer.bin: not downloaded",
    )


def test_a_model_in_the_bucket_itself(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL, "")
    assert content_of(download(cache, "gs://models").folder) == MODEL


def test_a_list_of_several_pages(storage: Storage, cache: Path) -> None:
    files = {**MODEL, **{f"extra/{number:04}": b"" for number in range(1100)}}
    upload(storage, files)
    assert content_of(download(cache).folder) == files


@pytest.mark.parametrize(
    ("name", "why"),
    [("../evil", "'.' or '..'"), ("a//b", "slash"), ("a\\b", "backslash"), ("a\tb", "control")],
)
def test_names_that_leave_the_folder_are_refused(storage: Storage, cache: Path, name: str, why: str) -> None:
    upload(storage, {**MODEL, name: b"x"})
    with pytest.raises(ServingError, match=f"gs://models/llama/v1: .* has .*{why}|begins.*{why}"):
        download(cache)
    assert not cache.exists()


def test_a_name_that_is_file_and_folder_is_refused(storage: Storage, cache: Path) -> None:
    upload(storage, {**MODEL, "a": b"x", "a/b": b"x"})
    with pytest.raises(ServingError, match="'a' is a file, and the folder of 'a/b'"):
        download(cache)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "MANIFEST.json: is no manifest"),
        (manifest({"config.json": MODEL["config.json"], "gone.json": b""}), "names 'gone.json', which is not there"),
        (manifest({"config.json": b"another"}), "config.json: has 13 bytes, and MANIFEST.json says 7"),
        (manifest({"../config.json": b"x"}), "MANIFEST.json: path"),
        (manifest({"a\nb": b"x"}), "MANIFEST.json: .*control character"),
    ],
)
def test_a_manifest_that_is_not_of_what_is_there(storage: Storage, cache: Path, content: bytes, why: str) -> None:
    upload(storage, {**MODEL, "MANIFEST.json": content})
    with pytest.raises(ServingError, match=why):
        download(cache)
    assert not cache.exists()


def test_a_digest_that_is_not_of_what_came_is_found_where_it_is_asked_for(storage: Storage, cache: Path) -> None:
    other = {**MODEL, WEIGHTS: noise(len(MODEL[WEIGHTS]), 9)}
    upload(storage, {**MODEL, "MANIFEST.json": manifest(other)})
    for _ in range(2):
        with pytest.raises(ServingError, match=f"{WEIGHTS} has sha256 .*manifest says"):
            download(cache, verify=True)
    assert media_calls(storage, WEIGHTS) == 11  # what has come is kept: the second time nothing was fetched again
    assert content_of(download(cache).folder)[WEIGHTS] == MODEL[WEIGHTS]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (
            "gs://models/lama/v1",
            r"no model is there.*did you mean gs://models/llama/\? in gs://models/ are: gs://models/",
        ),
        (
            "gs://models/llama/v2",
            r"did you mean gs://models/llama/v1/\? in gs://models/llama/ are: gs://models/llama/v1/",
        ),
        (
            "gs://models/llama",
            r"neither MANIFEST.json nor a .safetensors; in gs://models/llama/ are: gs://models/llama/v1/",
        ),
        ("gs://models/llama/v1/model.safetensors", "is a file; name the folder of the model, gs://models/llama/v1/$"),
        ("gs://models/llama/v1/model", r"did you mean gs://models/llama/v1/model.*in gs://models/llama/v1/ are: "),
        ("gs://models", "gs://models: no model is there.*in gs://models/ are: gs://models/llama/"),
        ("gs://nobody/llama", "gs://nobody: there is no such bucket"),
    ],
)
def test_where_no_model_is_it_says_what_is_there(storage: Storage, cache: Path, url: str, why: str) -> None:
    upload(storage, MODEL)
    with pytest.raises(ServingError, match=why):
        download(cache, url)


def test_an_empty_bucket(storage: Storage, cache: Path) -> None:
    with pytest.raises(ServingError, match="gs://models/llama/v1: the bucket is empty; upload an export"):
        download(cache)


@pytest.mark.parametrize("name", ["tokenizer.json", "MANIFEST.json"])
def test_what_is_stored_compressed_is_refused(storage: Storage, cache: Path, name: str) -> None:
    upload(storage, MODEL)
    put(storage, f"llama/v1/{name}", b"x", contentEncoding="gzip")
    put(storage, "llama/v2/README.md", b"x", contentEncoding="gzip")  # which belongs to no model
    with pytest.raises(ServingError, match="llama/v2: no model is there"):
        download(cache, "gs://models/llama/v2")
    with pytest.raises(ServingError, match=rf"{name}: is stored with Content-Encoding gzip.*upload it again"):
        download(cache)


def test_a_cache_that_cannot_be_made(storage: Storage, tmp_path: Path) -> None:
    upload(storage, MODEL)
    (tmp_path / "file").write_text("")
    with pytest.raises(ServingError, match=r"file/cache: Not a directory; name a cache folder that can be written"):
        download(tmp_path / "file" / "cache")


def test_a_cache_in_a_home(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upload(storage, MODEL)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert download(Path("~/.cache/weights")).folder.parent == tmp_path / ".cache" / "weights"
    with pytest.raises(ServingError, match="~no-such-user/cache: this user has no home; name a cache folder without ~"):
        download(Path("~no-such-user/cache"))


def test_a_model_in_the_cache_of_which_something_was_taken(storage: Storage, cache: Path) -> None:
    upload(storage, MODEL)
    (download(cache).folder / WEIGHTS).unlink()
    with pytest.raises(ServingError, match=rf"{WEIGHTS}: is not the {10 * PART + 777} bytes.*remove {cache}"):
        download(cache)


def test_limits_that_fetch_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"part_bytes=0.*every number is above 0"):
        Limits(part_bytes=0)
    with pytest.raises(ValueError, match=r"workers=0.*every number is above 0"):
        Limits(workers=0)
