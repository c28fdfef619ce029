"""The offline preview on small real programs: what it shows of a good one, and what it says of a bad one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest

from infra.preview import (
    EngineRefusal,
    Preview,
    PreviewError,
    ProgramFailed,
    ProgramRefused,
    ProjectError,
    find_project,
    preview,
)
from policies.resources import SECRET, UNKNOWN, Resource

STACK_FILE = """
config:
  gcp:project: acme
  gcp:zone: us-central1-b
  shop:owner: Ärger & Söhne 東京
  size: 100
  shop:token: {secure: v1:c2VjcmV0}
  shop:nested: {plain: 1, deep: {password: {secure: v1:c2VjcmV0}}}
"""

PROGRAM = """
    import json
    import sys

    import pulumi
    import pulumi_gcp as gcp
    from sibling import LABEL

    config = pulumi.Config()
    nested = config.require_object("nested")
    password = config.require_secret_object("nested").apply(lambda n: n["deep"]["password"])
    print("printed", LABEL)
    print("complained", file=sys.stderr)
    pulumi.log.warn("careful")
    pulumi.log.debug("not for anybody")

    def owned(args):
        if args.type_ == "gcp:compute/disk:Disk":
            labels = {**args.props.get("labels", {}), "transformed": "yes"}
            return pulumi.ResourceTransformResult(props={**args.props, "labels": labels}, opts=args.opts)
        return None

    pulumi.runtime.register_resource_transform(owned)

    def keep(args):
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(protect=True, ignore_changes=["size"]))
        return pulumi.ResourceTransformResult(props=args.props, opts=opts)


    class Inner(pulumi.ComponentResource):
        def __init__(self, name, opts=None):
            super().__init__("shop:store:Inner", name, None, opts)
            child = pulumi.ResourceOptions(parent=self)
            size = config.require_int("size")
            self.disk = gcp.compute.Disk(f"{name}-disk", type="hyperdisk-ml", size=size, opts=child)
            self.register_outputs({"disk": self.disk.name})


    class Outer(pulumi.ComponentResource):
        def __init__(self, name, opts=None):
            super().__init__("shop:store:Outer", name, None, opts)
            self.inner = Inner(f"{name}-inner", pulumi.ResourceOptions(parent=self))


    outer = Outer("outer")
    east = gcp.Provider("east", project="other", zone="us-east5-b")
    snapshot = gcp.compute.Snapshot(
        "snapshot",
        source_disk=outer.inner.disk.self_link,
        labels={"owner": config.require("owner"), "token": config.require_secret("token"), "password": password},
        opts=pulumi.ResourceOptions(
            depends_on=[outer],
            protect=True,
            retain_on_delete=True,
            delete_before_replace=True,
            ignore_changes=["description"],
            replace_on_changes=["sourceDisk"],
            deleted_with=outer.inner.disk,
            aliases=[pulumi.Alias(name="old"), "urn:pulumi:dev::shop::gcp:compute/snapshot:Snapshot::older"],
            custom_timeouts=pulumi.CustomTimeouts(create="10m", delete="5m"),
            additional_secret_outputs=["description"],
            import_="projects/acme/global/snapshots/snapshot",
        ),
    )
    far = gcp.compute.Disk(
        "far",
        provisioned_throughput=1200.0,
        description=pulumi.Output.secret("hunter2"),
        opts=pulumi.ResourceOptions(provider=east, transforms=[keep]),
    )
    pod = gcp.tpu.V2Vm("pod", runtime_version="v2-alpha-tpuv6e", metadata={"disk": far.id})
    bucket = gcp.storage.Bucket("Checkpoints", location="US-CENTRAL1")
    network = gcp.compute.Network("Net")
    budget = gcp.billing.Budget(
        "budget",
        billing_account="0",
        amount={"specified_amount": {"units": "10"}},
        threshold_rules=[{"threshold_percent": 0.9}],
    )
    channel = gcp.monitoring.NotificationChannel("channel", type="email")
    old = gcp.compute.Disk.get("old", "projects/acme/zones/us-central1-b/disks/old")
    other = pulumi.StackReference("other")
    project = gcp.organizations.get_project()

    pulumi.export("bucket", bucket.name)
    pulumi.export("link", far.self_link)
    pulumi.export("twice", outer.inner.disk.size.apply(lambda size: 2 * size))
    pulumi.export("never", far.id.apply(lambda _: 1 / 0))
    pulumi.export("token", config.require_secret("token"))
    pulumi.export("plain", nested["plain"])
    pulumi.export("leak", "user:" + nested["deep"]["password"])
    pulumi.export("number", f"projects/{project.number}")
    pulumi.export("project", project.project_id)
    pulumi.export("other", other.get_output("anything"))
    pulumi.export("read", old.id)
    pulumi.export("half", 0.5)
    pulumi.export("channel", channel.name)
    pulumi.export("asset", pulumi.StringAsset("text"))
    pulumi.export("labels", far.labels)
"""

Write = Callable[..., Path]


def write_project(folder: Path, program: str, stack_file: str = "", **settings: str) -> Path:
    """A project with one stack, `dev`, whose program is in the folder `main`."""
    (folder / "main").mkdir(parents=True)
    lines = {"name": "shop", "runtime": "python", "main": "main/", **settings}
    (folder / "Pulumi.yaml").write_text("".join(f"{key}: {value}\n" for key, value in lines.items()))
    (folder / "Pulumi.dev.yaml").write_text(stack_file, encoding="utf-8")
    (folder / "main" / "__main__.py").write_text(textwrap.dedent(program), encoding="utf-8")
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a project with the given program and stack file."""
    return lambda program, stack_file="", **settings: write_project(
        tmp_path / "project", program, stack_file, **settings
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Preview, Preview]:
    """Two previews of the same stack, made at the same time."""
    folder = write_project(tmp_path_factory.mktemp("shop"), PROGRAM, STACK_FILE)
    (folder / "main" / "sibling.py").write_text('LABEL = "ünïcode"\n', encoding="utf-8")
    with ThreadPoolExecutor() as threads:
        first, second = threads.map(lambda _: preview("dev", folder), range(2))
    return first, second


@pytest.fixture(scope="module")
def seen(both: tuple[Preview, Preview]) -> Preview:
    """The preview of the large program."""
    return both[0]


def named(seen: Preview, name: str) -> Resource:
    """The one resource of that logical name."""
    (found,) = (resource for resource in seen.resources if resource.name == name)
    return found


def test_two_previews_at_once_are_equal(both: tuple[Preview, Preview]) -> None:
    assert both[0] == both[1]
    assert [resource.urn for resource in both[0].resources] == [resource.urn for resource in both[1].resources]


def test_urns_carry_the_types_of_all_parents_in_the_order_of_the_program(seen: Preview) -> None:
    assert [resource.urn.removeprefix("urn:pulumi:dev::shop::") for resource in seen.resources] == [
        "pulumi:pulumi:Stack::shop-dev",
        "pulumi:providers:gcp::default_10_2_0",
        "pulumi:providers:gcp::east",
        "shop:store:Outer::outer",
        "shop:store:Outer$shop:store:Inner::outer-inner",
        "shop:store:Outer$shop:store:Inner$gcp:compute/disk:Disk::outer-inner-disk",
        "gcp:compute/snapshot:Snapshot::snapshot",
        "gcp:compute/disk:Disk::far",
        "gcp:tpu/v2Vm:V2Vm::pod",
        "gcp:storage/bucket:Bucket::Checkpoints",
        "gcp:compute/network:Network::Net",
        "gcp:billing/budget:Budget::budget",
        "gcp:monitoring/notificationChannel:NotificationChannel::channel",
    ]
    assert [resource.name for resource in seen.resources if not resource.custom] == ["shop-dev", "outer", "outer-inner"]


def test_project_stack_and_log(seen: Preview) -> None:
    assert (seen.project, seen.stack) == ("shop", "dev")
    assert seen.log == ("printed ünïcode", "complained", "warning: careful")


def test_configuration_is_shown_without_what_is_encrypted(seen: Preview) -> None:
    assert seen.config == {
        "gcp:project": "acme",
        "gcp:zone": "us-central1-b",
        "shop:nested": SECRET,
        "shop:owner": "Ärger & Söhne 東京",
        "shop:size": "100",
        "shop:token": SECRET,
    }


def test_outputs_are_known_as_far_as_a_preview_knows(seen: Preview) -> None:
    outputs = dict(seen.outputs)
    bucket = outputs.pop("bucket")
    assert bucket == named(seen, "Checkpoints").value("name")
    assert outputs == {
        "link": UNKNOWN,
        "twice": 200,
        "never": UNKNOWN,
        "token": SECRET,
        "plain": 1,
        "leak": SECRET,
        "number": UNKNOWN,
        "project": "acme",
        "other": UNKNOWN,
        "read": "projects/acme/zones/us-central1-b/disks/old",
        "half": Decimal("0.5"),
        "channel": UNKNOWN,
        "asset": {"text": "text"},
        "labels": {"transformed": "yes"},
    }
    assert seen.resources.get("urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev").outputs == seen.outputs  # type: ignore[union-attr]


def test_options_are_recorded(seen: Preview) -> None:
    disk = named(seen, "outer-inner-disk").urn
    options = named(seen, "snapshot").options
    assert options.parent == "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev"
    assert options.protect
    assert options.retain_on_delete
    assert options.delete_before_replace
    assert options.ignore_changes == ("description",)
    assert options.replace_on_changes == ("sourceDisk",)
    assert options.deleted_with == disk
    assert options.aliases == (
        "urn:pulumi:dev::shop::gcp:compute/snapshot:Snapshot::old",
        "urn:pulumi:dev::shop::gcp:compute/snapshot:Snapshot::older",
    )
    assert options.custom_timeouts == {"create": "600s", "delete": "300s"}
    assert "description" in options.additional_secret_outputs
    assert options.import_id == "projects/acme/global/snapshots/snapshot"


def test_dependencies_on_a_component_are_those_on_its_resources(seen: Preview) -> None:
    disk = named(seen, "outer-inner-disk").urn
    options = named(seen, "snapshot").options
    assert options.dependencies == (disk,)
    assert options.property_dependencies == {"sourceDisk": (disk,)}
    assert named(seen, "pod").options.property_dependencies == {"metadata": (named(seen, "far").urn,)}
    assert named(seen, "pod").inputs["metadata"] == {"disk": UNKNOWN}


def test_every_cloud_resource_has_its_provider(seen: Preview) -> None:
    default = seen.resources.provider_of(named(seen, "pod"))
    east = seen.resources.provider_of(named(seen, "far"))
    assert default is not None
    assert default.inputs == {"project": "acme", "zone": "us-central1-b", "version": "10.2.0"}
    assert east is not None
    assert (east.name, east.value("zone")) == ("east", "us-east5-b")
    assert named(seen, "outer").options.provider == ""


def test_places_come_from_the_provider_where_the_type_has_them(seen: Preview) -> None:
    far, network, bucket = named(seen, "far"), named(seen, "Net"), named(seen, "Checkpoints")
    assert (far.value("project"), far.value("zone"), far.value("region")) == ("other", "us-east5-b", None)
    assert (network.value("project"), network.value("zone")) == ("acme", None)
    assert bucket.value("location") == "US-CENTRAL1"
    assert "zone" not in far.inputs


def test_defaults_that_decide_the_price_are_answered(seen: Preview) -> None:
    assert named(seen, "pod").value("acceleratorType") == "v2-8"
    assert named(seen, "far").value("type") == "pd-standard"
    assert named(seen, "outer-inner-disk").value("type") == "hyperdisk-ml"
    assert named(seen, "Checkpoints").value("storageClass") == "STANDARD"
    assert "acceleratorType" not in named(seen, "pod").inputs


def test_names_are_made_up_as_the_provider_would(seen: Preview) -> None:
    assert str(named(seen, "Net").value("name")).startswith("net-")
    assert str(named(seen, "Checkpoints").value("name")).startswith("Checkpoints-")
    assert named(seen, "channel").value("name") is None


def test_transforms_run(seen: Preview) -> None:
    assert named(seen, "outer-inner-disk").inputs["labels"] == {"transformed": "yes"}
    assert named(seen, "far").inputs["labels"] == {"transformed": "yes"}
    assert (named(seen, "far").options.protect, named(seen, "far").options.ignore_changes) == (True, ("size",))
    assert not named(seen, "outer-inner-disk").options.protect


def test_numbers_are_exact(seen: Preview) -> None:
    throughput, share = (
        named(seen, "far").inputs["provisionedThroughput"],
        named(seen, "budget").value("thresholdRules", 0, "thresholdPercent"),
    )
    assert (throughput, type(throughput)) == (1200, int)
    assert share == Decimal("0.9")


def test_component_outputs_are_recorded(seen: Preview) -> None:
    assert named(seen, "outer-inner").outputs == {"disk": named(seen, "outer-inner-disk").value("name")}


def test_what_is_only_read_is_not_ours(seen: Preview) -> None:
    assert [resource.urn.rsplit("::")[-1] for resource in seen.external] == ["old", "other"]
    assert {resource.name for resource in seen.resources}.isdisjoint({"old", "other"})


def test_secrets_are_nowhere(seen: Preview) -> None:
    labels = named(seen, "snapshot").inputs["labels"]
    assert labels == {"owner": "Ärger & Söhne 東京", "token": SECRET, "password": SECRET}
    assert named(seen, "far").inputs["description"] is SECRET
    everything = repr(seen) + json.dumps([vars(resource) for resource in seen.resources], default=repr)
    for secret in ("hunter2", "c2VjcmV0", "[secret]"):
        assert secret not in everything


TYPED = """
    import pulumi
    import pulumi_gcp as gcp

    gcp.tpu.V2Vm("pod", runtime_version="x", scheduling_config={"sopt": True}, data_disks=[{"source_disk": 1}])
    gcp.compute.Disk("words", size="lots")
    gcp.compute.Disk("half", size=pulumi.Output.secret("a password"), provisioned_iops=1.5, labels={"ttl": 7})
    pulumi.CustomResource("gcp:compute/disks:Disk", "typo", {})
    pulumi.CustomResource("random:index/id:Id", "random", {})
    pulumi.CustomResource("gcp:compute/disk:Disk", "raw", {"sise": 3})
    gcp.compute.InstanceTemplate("fine", machine_type="e2-small", disks=[{"boot": True, "disk_size_gb": 10}])
"""


def test_inputs_are_held_against_the_sdk(write: Write) -> None:
    with pytest.raises(EngineRefusal) as refused:
        preview("dev", write(TYPED))
    urn, pod = "urn:pulumi:dev::shop::gcp:compute/disk:Disk::", "urn:pulumi:dev::shop::gcp:tpu/v2Vm:V2Vm::pod"
    # Of a resource without a class of its own the SDK does not tell where it was made.
    assert str(refused.value).splitlines() == [
        f"{urn}raw: sise (here 3) is not an input of gcp.compute.Disk. Did you mean size?",
        "urn:pulumi:dev::shop::gcp:compute/disks:Disk::typo: gcp:compute/disks:Disk is not a type of the gcp provider."
        " Did you mean gcp:compute/disk:Disk?",
        'urn:pulumi:dev::shop::random:index/id:Id::random: there is no provider "random":'
        " no SDK that the program imports has the type random:index/id:Id",
        f"{pod}: data_disks[0].source_disk of gcp.tpu.V2Vm is 1; it must be text",
        "  at __main__.py:5",
        f"{pod}: scheduling_config.sopt (here true) is not an input of gcp.tpu.V2Vm. Did you mean spot?",
        "  at __main__.py:5",
        f'{urn}words: size of gcp.compute.Disk is "lots"; it must be a whole number',
        "  at __main__.py:6",
        f"{urn}half: labels.ttl of gcp.compute.Disk is 7; it must be text",
        "  at __main__.py:7",
        f"{urn}half: provisioned_iops of gcp.compute.Disk is 1.5; it must be a whole number",
        "  at __main__.py:7",
    ]


def test_what_does_not_fit_is_told_where_the_sdk_itself_fails_on_it(write: Write) -> None:
    """The SDK ends the program at the answer for such a list: what is registered after it may not be seen."""
    listed = 'gcp.compute.Disk("list", guest_os_features={"type": "x"}, multi_writer="yes")'
    with pytest.raises(EngineRefusal) as refused:
        preview("dev", write(f"import pulumi_gcp as gcp\n{listed}\n"))
    urn = "urn:pulumi:dev::shop::gcp:compute/disk:Disk::list"
    assert str(refused.value).splitlines() == [
        f"{urn}: guest_os_features of gcp.compute.Disk is a mapping; it must be a list",
        "  at __main__.py:2",
        f'{urn}: multi_writer of gcp.compute.Disk is "yes"; it must be true or false',
        "  at __main__.py:2",
    ]


REFUSED = {
    "two of one name": (
        """
        import pulumi
        class Twin(pulumi.ComponentResource):
            def __init__(self, name):
                super().__init__("shop:a:B", name)
        Twin("twin")

        Twin("twin")
        """,
        r"^urn:pulumi:dev::shop::shop:a:B::twin: registered twice: at __main__.py:6, and again at __main__.py:8\n"
        r"  A logical name must be unique among the resources of one type under one parent\.$",
    ),
    "a function that only Google can answer": (
        """
        import pulumi
        pulumi.runtime.invoke("gcp:compute/getZones:getZones", {"region": "us-central1"})
        """,
        r"^gcp:compute/getZones:getZones: a function that only Google can answer; an offline preview answers gcp:",
    ),
    "a misspelt function": (
        """
        import pulumi
        pulumi.runtime.invoke("gcp:organizations/getProjekt:getProjekt", {})
        """,
        r"Did you mean gcp:organizations/getProject:getProject\?$",
    ),
    "a method of a provider": (
        """
        import pulumi
        pulumi.runtime.call("pulumi:providers:gcp/terraformConfig", {})
        """,
        r"^pulumi:providers:gcp/terraformConfig: a method of a provider, which an offline preview does not have$",
    ),
    "a name too long to make one from": (
        """
        import pulumi_gcp
        pulumi_gcp.serviceaccount.Account("a-service-account-of-long-name")
        """,
        r'accountId is not set, and "a-service-account-of-long-name" is too long to make a name from: '
        r"with the suffix of 8 characters it has 38, the limit is 30; set accountId or shorten it$",
    ),
    "a number without end": (
        """
        import pulumi
        pulumi.CustomResource("gcp:compute/disk:Disk", "endless", {"size": float("inf")})
        """,
        r"endless: size: inf is not a finite number$",
    ),
    "a provider that is not there": (
        """
        import pulumi
        class Elsewhere(pulumi.ProviderResource):
            pass
        ghost = pulumi.resource.DependencyProviderResource("urn:pulumi:dev::shop::pulumi:providers:gcp::ghost::id")
        pulumi.CustomResource("gcp:compute/disk:Disk", "haunted", {}, pulumi.ResourceOptions(provider=ghost))
        """,
        r"haunted: its provider urn:pulumi:dev::shop::pulumi:providers:gcp::ghost::id was never registered$",
    ),
    "a component of another language": (
        """
        import pulumi
        pulumi.ComponentResource("other:a:B", "remote", {}, remote=True)
        """,
        r"remote: a component of another language; its plugin runs under Pulumi only$",
    ),
}


@pytest.mark.parametrize(("program", "message"), REFUSED.values(), ids=list(REFUSED))
def test_the_engine_refuses(write: Write, program: str, message: str) -> None:
    with pytest.raises(EngineRefusal, match=message):
        preview("dev", write(program))


FAILED = {
    "an exception": (
        """
        def fails():
            return {}["key"]
        fails()
        """,
        'Traceback (most recent call last):\n  File "{main}", line 4, in <module>\n    fails()\n'
        '  File "{main}", line 3, in fails\n    return {{}}["key"]\n           ~~^^^^^^^\nKeyError: \'key\'',
    ),
    "an exception inside apply": (
        """
        import pulumi
        pulumi.export("never", pulumi.Output.from_input(0).apply(lambda zero: 1 / zero))
        """,
        'Traceback (most recent call last):\n  File "{main}", line 3, in <lambda>\n'
        '    pulumi.export("never", pulumi.Output.from_input(0).apply(lambda zero: 1 / zero))\n'
        "                                                                          ~~^~~~~~\n"
        "ZeroDivisionError: division by zero",
    ),
    "a chain of exceptions": (
        """
        try:
            1 / 0
        except ZeroDivisionError as error:
            raise ValueError("no") from error
        """,
        'Traceback (most recent call last):\n  File "{main}", line 3, in <module>\n    1 / 0\n    ~~^~~\n'
        "ZeroDivisionError: division by zero\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "{main}", line 5, in <module>\n'
        '    raise ValueError("no") from error\nValueError: no',
    ),
    "a syntax error": (
        "import",
        '  File "{main}", line 1\n    import\n          ^\nSyntaxError: invalid syntax',
    ),
    "a transform that breaks": (
        """
        import pulumi
        def breaks(args):
            raise ValueError("not this one")
        pulumi.runtime.register_resource_transform(breaks)
        pulumi.ComponentResource("shop:a:B", "changed")
        """,
        'a transform failed: not this one:\n  File "{main}", line 4, in breaks\n    raise ValueError("not this one")\n',
    ),
    "the end of its input": (
        "input('name? ')",
        "Traceback (most recent call last):\n  File \"{main}\", line 1, in <module>\n    input('name? ')\n"
        "EOFError: EOF when reading a line",
    ),
    "sys.exit": ("import sys\nsys.exit(4)", "the program ended itself: SystemExit(4)"),
    "os._exit": (
        "import os\nprint('last words', flush=True)\nos._exit(3)",
        "the program's process ended itself with exit code 3, before Pulumi was told its end\n  | last words",
    ),
    "the engine's line written to": (
        """
        import os, sys
        os.write(int(sys.orig_argv[-1]), b"garbage\\n")
        """,
        "the answer of the program's process cannot be read;"
        " has the program written to a file descriptor that is not its own?",
    ),
    "another runtime configured": (
        "import pulumi\npulumi.runtime.configure(pulumi.runtime.Settings(project='x', stack='y'))\n",
        "the program ended and no stack was registered; has it configured Pulumi's runtime anew?",
    ),
    "a crash": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
        "the program's process died of SIGSEGV",
    ),
    "a crash that a forked child outlives": (
        "import os, time\nif os.fork() == 0:\n    time.sleep(60)\nos._exit(7)",
        "the program's process ended itself with exit code 7, before Pulumi was told its end",
    ),
}


@pytest.mark.parametrize(("program", "message"), FAILED.values(), ids=list(FAILED))
def test_the_program_fails(write: Write, program: str, message: str) -> None:
    folder = write(program)
    with pytest.raises(ProgramFailed) as failed:
        preview("dev", folder)
    assert str(failed.value) == message.format(main=folder / "main" / "__main__.py")


def test_a_program_that_hangs_is_stopped_where_it_is(write: Write) -> None:
    folder = write("import time\nprint('soon', flush=True)\ntime.sleep(60)\n")
    start = time.monotonic()
    with pytest.raises(ProgramFailed) as failed:
        preview("dev", folder, timeout=3)
    assert 3 <= time.monotonic() - start < 30
    place = folder / "main" / "__main__.py"
    assert str(failed.value) == (
        f"the program did not end within 3 s and was stopped; it was at {place}, line 3 in <module>\n  | soon"
    )


def test_a_run_error_is_only_its_message(write: Write) -> None:
    with pytest.raises(ProgramRefused) as refused:
        preview("dev", write('import pulumi\nraise pulumi.RunError("Pulumi.dev.yaml: größer als 4")'))
    assert str(refused.value) == "Pulumi.dev.yaml: größer als 4"


def test_an_encrypted_number_is_explained(write: Write) -> None:
    folder = write("import pulumi\npulumi.Config().require_int('size')", "config: {size: {secure: v1:eHg=}}")
    with pytest.raises(ProgramRefused, match=r"'shop:size' value '\[secret\]' is not a valid 'int'\n") as refused:
        preview("dev", folder)
    assert "cannot be read offline" in str(refused.value)


def test_an_empty_stack_file_is_a_stack_without_settings(write: Write) -> None:
    found = preview("dev", write("import sys\nsys.exit()"))
    assert found.config == {}
    assert [resource.name for resource in found.resources] == ["shop-dev"]


def test_the_program_meets_the_world_as_under_pulumi(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_SHOP_OWNER", "leaked")
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "leaked")
    monkeypatch.setenv("SHOP", "kept")
    folder = write(
        """
        import os, sys
        import pulumi
        import infra.own

        pulumi.export("folder", os.getcwd())
        pulumi.export("argv", sys.argv)
        pulumi.export("name", __name__)
        pulumi.export("own", infra.own.WHOSE)
        pulumi.export("path", sys.path[0])
        pulumi.export("owner", pulumi.Config().get("owner"))
        pulumi.export("leaked", [key for key in os.environ if key == "PULUMI_ACCESS_TOKEN"])
        pulumi.export("kept", os.environ["SHOP"])
        pulumi.export("dry", pulumi.runtime.is_dry_run())
        pulumi.export("organization", pulumi.get_organization())
        pulumi.export("root", pulumi.runtime.get_root_directory())
        """
    )
    own = folder / "main" / "infra"
    own.mkdir()
    (own / "__init__.py").touch()
    (own / "own.py").write_text("WHOSE = 'the program'\n")
    assert preview("dev", folder).outputs == {
        "folder": str(folder / "main"),
        "argv": (".",),
        "name": "__main__",
        "own": "the program",
        "path": ".",
        "leaked": (),
        "kept": "kept",
        "dry": True,
        "organization": "organization",
        "root": str(folder),
    }


def test_the_program_prints_to_the_log_only(write: Write, capfd: pytest.CaptureFixture[str]) -> None:
    found = preview("dev", write("import subprocess\nprint('one')\nsubprocess.run(['echo', 'two'], check=True)\n"))
    assert sorted(found.log) == ["one", "two"]
    assert capfd.readouterr() == ("", "")


def test_what_the_program_started_ends_with_it(write: Write) -> None:
    found = preview("dev", write("import subprocess\nprint(subprocess.Popen(['sleep', '60']).pid)\n"))
    assert _soon(lambda: not _lives(int(found.log[0])))


def test_main_may_name_a_file(write: Write) -> None:
    folder = write("import pulumi\npulumi.export('file', __file__)", main="main/__main__.py")
    assert preview("dev", folder).outputs == {"file": "__main__.py"}


def test_hooks_and_packages_are_taken(write: Write) -> None:
    program = """
    import asyncio
    import pulumi
    hook = pulumi.ResourceHook("hook", lambda args: 1 / 0)
    pulumi.ComponentResource("shop:a:B", "hooked", opts=pulumi.ResourceOptions(
        hooks=pulumi.ResourceHookBinding(before_create=[hook])))
    async def main():
        return {"reference": await pulumi.runtime.register_package("base", "1.0.0", "", "own", "2.0.0", "")}
    pulumi.run(main)
    """
    found = preview("dev", write(program))
    assert [resource.name for resource in found.resources] == ["shop-dev", "hooked"]
    assert found.outputs == {"reference": "base@1.0.0"}


def test_errors_before_anything_runs(write: Write, tmp_path: Path) -> None:
    folder = write("raise SystemExit(9)")
    with pytest.raises(ProjectError, match=r'no stack "deb".*\n  The stacks are: dev\. Did you mean dev\?'):
        preview("deb", folder)
    with pytest.raises(ProjectError, match=r"no Pulumi\.yaml in .*; run this in a Pulumi project"):
        preview("dev", tmp_path)
    assert issubclass(ProjectError, PreviewError)


def test_the_project_is_found_from_a_folder_inside(write: Write, tmp_path: Path) -> None:
    folder = write("")
    assert find_project(folder / "main") == folder
    with pytest.raises(ProjectError, match=r"no Pulumi\.yaml in .* or in a folder above"):
        find_project(tmp_path)


HANGS = """
import os, pathlib, time
pathlib.Path(os.environ["PID_FILE"]).write_text(str(os.getpid()))
time.sleep(60)
"""
PARENT = """
import sys
from pathlib import Path
from infra.preview import preview
preview("dev", Path(sys.argv[1]))
"""


@pytest.fixture
def running(write: Write, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process that previews a program that hangs, and the process id of that program."""
    pid_file = tmp_path / "pid"
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(write(HANGS))],
        env={**os.environ, "PID_FILE": str(pid_file)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert _soon(lambda: pid_file.exists() and pid_file.read_text() != "")
        yield parent, int(pid_file.read_text())
    finally:
        parent.kill()
        parent.wait()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_no_program_is_left_behind(running: tuple[subprocess.Popen[bytes], int], how: signal.Signals) -> None:
    parent, program = running
    parent.send_signal(how)
    parent.wait()
    assert _soon(lambda: not _lives(program))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A killed child of a killed parent may wait for the init process to take notice.
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def _soon(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return False
