"""The lines of /proc/self/mounts, and the mount that a path is on."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from inference.weights.sources.mounts import Mount, mount_of, parse_mounts

TEXT = r"""/dev/sda1 / ext4 rw,relatime,discard,errors=remount-ro 0 0
proc /proc proc rw,nosuid 0 0
fusectl /sys/fs/fuse/connections fusectl rw,nosuid,nodev,noexec,relatime 0 0
/dev/nvme0n2 /mnt/models ext4 ro,noatime,norecovery 0 0
my-bucket /mnt/models/bucket fuse.gcsfuse ro,nosuid,nodev,user_id=0,group_id=0,default_permissions,allow_other 0 0
my-bucket /gke fuse rw,nosuid,nodev,noexec,relatime,user_id=0,group_id=0,allow_other,max_read=131072 0 0
a\040b /mnt/with\040blank\011tab\134n fuse.gcsfuse ro 0 0
/dev/sdb /mnt/modelsx xfs rw 0 0
systemd-1 /auto autofs rw,fd=42,timeout=0 0 0
other /auto fuse.gcsfuse ro 0 0
/dev/sdc /mnt/ntfs fuseblk rw,blksize=4096 0 0
my-bucket /srv/bind fuse.gcsfuse ro,user_id=0 0 0
old /mnt/old gcsfuse ro
tag /mnt/virtio virtiofs rw 0 0
half /mnt/half
# remark of nobody's, but odd 0 0

"""
MOUNTS = parse_mounts(TEXT)


@pytest.mark.parametrize(
    ("path", "source", "is_fuse"),
    [
        ("/", "/dev/sda1", False),
        ("/home/me/export", "/dev/sda1", False),
        ("/mnt/models", "/dev/nvme0n2", False),
        ("/mnt/models/llama", "/dev/nvme0n2", False),
        ("/mnt/models/bucket", "my-bucket", True),
        ("/mnt/models/bucket/llama/v1", "my-bucket", True),
        ("/mnt/models/bucket2", "/dev/nvme0n2", False),  # a longer name is not a deeper folder
        ("/mnt/modelsx/llama", "/dev/sdb", False),
        ("/gke/llama", "my-bucket", True),  # mounted by a driver, which names no subtype
        ("/mnt/with blank\ttab\\n/llama", "a b", True),
        ("/auto/llama", "other", True),  # of two on one point the last is seen
        ("/mnt/ntfs/llama", "/dev/sdc", True),
        ("/srv/bind/llama", "my-bucket", True),
        ("/mnt/old/llama", "old", True),
        ("/mnt/virtio/llama", "tag", False),
        ("/mnt/half/llama", "/dev/sda1", False),  # no line, so no mount
        ("/sys/fs/fuse/connections/42", "fusectl", False),
    ],
)
def test_the_mount_of_a_path(path: str, source: str, is_fuse: bool) -> None:
    mount = mount_of(PurePath(path), MOUNTS)
    assert mount is not None
    assert (mount.source, mount.is_fuse) == (source, is_fuse)


def test_options_with_and_without_values() -> None:
    mount = mount_of(PurePath("/gke"), MOUNTS)
    assert mount is not None
    assert mount.options["max_read"] == "131072"
    assert mount.options["rw"] == ""
    assert "ro" not in mount.options


def test_bytes_that_are_no_utf8_come_through() -> None:
    (mount,) = parse_mounts("x /mnt/caf\\351 fuse ro 0 0\n")
    assert mount.point == PurePath("/mnt/caf\udce9")


@pytest.mark.parametrize("text", ["", "\n\n", "one two three\n"])
def test_no_mounts(text: str) -> None:
    assert parse_mounts(text) == ()
    assert mount_of(PurePath("/x"), parse_mounts(text)) is None


def test_those_of_this_machine() -> None:
    mount = mount_of(PurePath("/proc/self"), parse_mounts(Path("/proc/self/mounts").read_text()))
    assert isinstance(mount, Mount)
    assert mount.type == "proc"
