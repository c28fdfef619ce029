"""From --weights and --source to a folder and a style."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from inference.errors import ServingError
from inference.weights.reading_style import MIB
from inference.weights.sources.kinds import LocalModel, SourceKind
from inference.weights.sources.resolving import Kernel, resolve

ROOT_LINE = "/dev/sda1 / ext4 rw 0 0\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "a mount" / "llama"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"x" * 3000)
    (folder / "config.json").write_bytes(b"y" * 96)
    return folder


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    made = Kernel(proc=tmp_path / "proc", sys=tmp_path / "sys")
    mounted(made, ROOT_LINE)
    return made


def mounted(kernel: Kernel, text: str) -> None:
    (kernel.proc / "self" / "mounts").write_text(text)


def fuse_line(point: Path) -> str:
    return f"bucket {str(point).replace(' ', chr(92) + '040')} fuse.gcsfuse ro,user_id=0 0 0\n"


def read_ahead_of(kernel: Kernel, folder: Path, kib: int) -> Path:
    device = folder.stat().st_dev
    file = kernel.sys / "class" / "bdi" / f"{os.major(device)}:{os.minor(device)}" / "read_ahead_kb"
    file.parent.mkdir(parents=True)
    file.write_text(f"{kib}\n")
    return file


def resolved(weights: str | Path, kernel: Kernel, kind: SourceKind = SourceKind.AUTO) -> LocalModel:
    return resolve(str(weights), kind, cache=Path("/no/cache"), progress=lambda _: None, kernel=kernel)


def test_a_disk_is_read_in_many_large_places_at_once(model: Path, kernel: Kernel) -> None:
    got = resolved(model, kernel)
    assert (got.folder, got.kind, got.warnings) == (model, SourceKind.DISK, ())
    assert (got.bytes, got.fetched, got.rate) == (3096, 0, 0.0)
    assert (got.style.read_bytes, got.style.stretch_bytes) == (16 * MIB, 64 * MIB)


def test_a_fuse_mount_is_read_forward_through_long_stretches(model: Path, kernel: Kernel) -> None:
    mounted(kernel, ROOT_LINE + fuse_line(model.parent))
    got = resolved(model, kernel)
    assert got.kind is SourceKind.FUSE
    assert got.style.stretch_bytes >= 200 * MIB > 16 * MIB >= got.style.read_bytes
    assert got.style.in_flight_bytes >= got.style.workers * got.style.read_bytes


def test_links_are_followed_to_the_mount_that_they_lead_to(model: Path, kernel: Kernel, tmp_path: Path) -> None:
    mounted(kernel, ROOT_LINE + fuse_line(model.parent))
    link = tmp_path / "link"
    link.symlink_to(model.parent)
    got = resolved(link / "llama", kernel)
    assert (got.folder, got.kind) == (model, SourceKind.FUSE)


@pytest.mark.parametrize(
    ("kind", "fuse", "told"),
    [
        (SourceKind.DISK, True, "--source disk: .* is on fuse.gcsfuse; --source auto reads it as fuse"),
        (SourceKind.FUSE, False, "--source fuse: .* is on ext4; --source auto reads it as disk"),
        (SourceKind.FUSE, True, None),
        (SourceKind.DISK, False, None),
    ],
)
def test_what_is_asked_for_is_done_and_doubted(
    model: Path, kernel: Kernel, kind: SourceKind, fuse: bool, told: str | None
) -> None:
    mounted(kernel, ROOT_LINE + (fuse_line(model.parent) if fuse else ""))
    got = resolved(model, kernel, kind)
    assert got.kind is kind
    assert (got.style.stretch_bytes > 200 * MIB) is (kind is SourceKind.FUSE)
    assert len(got.warnings) == (told is not None)
    assert told is None or re.fullmatch(told, got.warnings[0])


def test_slow_mounts_are_warned_about(model: Path, kernel: Kernel) -> None:
    mounted(kernel, ROOT_LINE + fuse_line(model.parent))
    file = read_ahead_of(kernel, model, 128)
    (kernel.proc / "99").mkdir()
    (kernel.proc / "99" / "cmdline").write_bytes(f"gcsfuse\0--implicit-dirs\0bucket\0{model.parent}\0".encode())
    warnings = resolved(model, kernel).warnings
    assert len(warnings) == 2
    assert f"`echo 1024 > {file}`" in warnings[0]
    assert "--enable-buffered-read" in warnings[1]


def test_a_slow_disk_is_warned_about(model: Path, kernel: Kernel) -> None:
    file = read_ahead_of(kernel, model, 0)
    (warning,) = resolved(model, kernel).warnings
    assert f"0 KiB ahead, so that every read is cut small: `echo 4096 > {file}`" in warning


def test_without_proc_all_is_a_disk(model: Path, tmp_path: Path) -> None:
    assert resolved(model, Kernel(proc=tmp_path / "none", sys=tmp_path / "none")).kind is SourceKind.DISK


def test_this_machine(model: Path) -> None:
    assert resolved(model, Kernel()).folder == model


@pytest.mark.parametrize(
    ("weights", "kind", "why"),
    [
        ("", SourceKind.AUTO, "--weights is empty"),
        ("s3://bucket/x", SourceKind.AUTO, "s3://bucket/x: is neither a folder nor a gs:// address"),
        ("gs:/bucket/x", SourceKind.AUTO, "gs:/bucket/x: is neither a folder nor a gs:// address"),
        ("gs://UPPER/x", SourceKind.AUTO, "write it as gs://bucket/prefix"),
        (
            "gs://bucket/x",
            SourceKind.FUSE,
            "--source fuse: gs://bucket/x is no path; name the folder",
        ),
        ("gs://bucket/x", SourceKind.DISK, "--source disk: gs://bucket/x is no path"),
        ("/x", SourceKind.DOWNLOAD, "--source download: /x is no gs:// address"),
        ("a\0b", SourceKind.AUTO, "embedded null"),
        ("~no-such-user/x", SourceKind.AUTO, "(?i)home"),
    ],
)
def test_what_cannot_be_meant(kernel: Kernel, weights: str, kind: SourceKind, why: str) -> None:
    with pytest.raises(ServingError, match=why):
        resolved(weights, kernel, kind)


def test_a_path_that_is_not_there_is_answered_with_what_is(model: Path, kernel: Kernel) -> None:
    with pytest.raises(ServingError, match=rf"lama: No such file or directory; did you mean {model}\?"):
        resolved(model.parent / "lama", kernel)
    with pytest.raises(ServingError, match=rf"No such file or directory; in {model.parent} are: llama$"):
        resolved(model.parent / "mistral", kernel)
    with pytest.raises(ServingError, match=r"/no/such/folder: No such file or directory$"):
        resolved("/no/such/folder", kernel)


def test_a_folder_that_gcsfuse_does_not_show(model: Path, kernel: Kernel) -> None:
    mounted(kernel, ROOT_LINE + fuse_line(model.parent))
    (kernel.proc / "99").mkdir()
    (kernel.proc / "99" / "cmdline").write_bytes(f"gcsfuse\0bucket\0{model.parent}\0".encode())
    with pytest.raises(ServingError, match="only folders that have an object of their own: mount with --implicit-dirs"):
        resolved(model.parent / "mistral", kernel)


def test_a_file_is_no_model(model: Path, kernel: Kernel) -> None:
    with pytest.raises(ServingError, match="is a file; name the folder of the model"):
        resolved(model / "model.safetensors", kernel)


def test_a_link_in_a_circle(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(ServingError, match=r"--weights .*circle: .*(symbolic|loop)"):
        resolved(tmp_path / "circle", kernel)
