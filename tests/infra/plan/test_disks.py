"""Who may attach what: one form passes, and every other is refused with its reason."""

from __future__ import annotations

import dataclasses

import pytest

from infra.plan.disks import Attachment, DataDisk, attach_mistakes, readers_of

VOLUME = DataDisk(
    name="llama",
    type="hyperdisk-ml",
    gib=200,
    throughput=1200,
    access_mode="READ_ONLY_MANY",
    zone="us-central1-b",
)


def host(mode: str | None = "READ_ONLY", *, hosts: int = 1, name: str = "serve", disks: int = 2) -> Attachment:
    return Attachment(name=name, hosts=hosts, zone="us-central1-b", mode=mode, disks_per_host=disks)


@pytest.mark.parametrize("attachments", [[host()], [host()] * 4, [host(hosts=4)], [host(hosts=16), host()], []])
def test_read_only_many_and_read_only_everywhere_passes(attachments: list[Attachment]) -> None:
    assert attach_mistakes(VOLUME, attachments) == ()


def test_one_host_may_write_its_own_disk() -> None:
    own = dataclasses.replace(VOLUME, type="hyperdisk-balanced", throughput=None, access_mode=None)
    assert attach_mistakes(own, [host(None)]) == ()


WRITABLE = dataclasses.replace(VOLUME, access_mode="READ_WRITE_SINGLE")


@pytest.mark.parametrize(
    ("disk", "attachments", "why"),
    [
        (WRITABLE, [host(None)] * 4, "attaches llama READ_WRITE (also what an omitted mode is) and 4 hosts have it"),
        (WRITABLE, [host(None)] * 4, "access mode READ_WRITE_SINGLE lets one host attach it, and 4 do"),
        (VOLUME, [host("READ_WRITE"), *[host()] * 3], "attaches llama READ_WRITE"),
        (WRITABLE, [host("READ_WRITE"), *[host()] * 3], "attaches llama READ_WRITE"),
        (VOLUME, [host(None, hosts=4, name="pod")], "pod: a slice of 4 hosts takes data disks READ_ONLY only"),
        (dataclasses.replace(VOLUME, access_mode=None), [host()] * 2, "READ_WRITE_SINGLE (the default) lets one host"),
        (
            dataclasses.replace(VOLUME, type="hyperdisk-balanced"),
            [host()],
            "hyperdisk-balanced cannot be attached READ_ONLY; a volume for readers is hyperdisk-ml",
        ),
        (
            dataclasses.replace(VOLUME, type="pd-balanced", throughput=None, access_mode=None),
            [host()],
            "pd-balanced: a v6e host takes hyperdisk-balanced and hyperdisk-ml only",
        ),
        (VOLUME, [host(disks=33)], "33 disks a host; at most 32 with boot"),
        (VOLUME, [host(hosts=2501)], "2,501 hosts; hyperdisk-ml takes 2,500"),
        (
            dataclasses.replace(VOLUME, throughput=419),
            [host(hosts=21)],
            "419 MiB/s is too little for 21 readers of 200 GiB; at least 420",
        ),
        (
            dataclasses.replace(VOLUME, zone="us-east5-b"),
            [host()],
            "is in us-central1-b, llama in us-east5-b; a disk stays in its zone",
        ),
        (dataclasses.replace(VOLUME, throughput=399), [], "hyperdisk-ml of 200 GiB takes 400 to"),
        (
            dataclasses.replace(VOLUME, access_mode="READ_ONLY_SINGLE"),
            [],
            "modes are READ_WRITE_SINGLE, READ_WRITE_MANY, READ_ONLY_MANY. Did you mean READ_ONLY_MANY?",
        ),
        (
            dataclasses.replace(VOLUME, access_mode="READ_WRITE_MANY"),
            [],
            "hyperdisk-ml takes READ_WRITE_SINGLE or READ_ONLY_MANY",
        ),
    ],
)
def test_every_other_form_is_refused(disk: DataDisk, attachments: list[Attachment], why: str) -> None:
    assert any(why in broken for broken in attach_mistakes(disk, attachments))


@pytest.mark.parametrize(("readers", "throughput"), [(20, 400), (21, 420), (100, 2000)])
def test_more_than_twenty_readers_need_their_share(readers: int, throughput: int) -> None:
    enough = dataclasses.replace(VOLUME, throughput=throughput)
    assert attach_mistakes(enough, [host(hosts=readers)]) == ()
    assert readers_of([host(hosts=readers), host()]) == readers + 1
