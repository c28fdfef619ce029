"""Aliases, which no file of the engine keeps: the old URN of the offline preview is the one that the engine finds."""

from __future__ import annotations

from infra.preview import preview
from tests.engine.conftest import Standing
from tests.engine.walk import reading

COMMON = """
import pulumi
import pulumi_gcp as gcp
from pulumi import Alias, ResourceOptions


def disk(name, cloud, **options):
    return gcp.compute.Disk(
        name, name=cloud, size=10, type="pd-ssd", zone="us-central1-b", opts=ResourceOptions(**options)
    )


class Box(pulumi.ComponentResource):
    def __init__(self, name, type_="shop:store:Box", **options):
        super().__init__(type_, name, None, ResourceOptions(**options))
        self.inner = disk(f"{name}-inner", name.replace("crate", "box"), parent=self)


shelf = Box("shelf")
"""
BEFORE = f"""{COMMON}
Box("crate")
Box("typed", "shop:store:Case")
disk("named-once", "named")
disk("loose", "loose")
disk("held", "held", parent=shelf)
disk("told-once", "told")
"""
AFTER = f"""{COMMON}
Box("box", aliases=[Alias(name="crate")])
Box("typed", aliases=[Alias(type_="shop:store:Case")])
disk("named", "named", aliases=[Alias(name="named-once")])
disk("loose", "loose", parent=shelf, aliases=[Alias(parent=pulumi.ROOT_STACK_RESOURCE)])
disk("held", "held", aliases=[Alias(parent=shelf)])
disk("told", "told", aliases=["urn:pulumi:dev::spotrail::gcp:compute/disk:Disk::told-once"])
"""
ALIASED = {"box", "typed", "named", "loose", "held", "told"}


def test_an_alias_is_the_urn_that_the_engine_finds_in_the_state(standing: Standing) -> None:
    stand = standing("dev", program=BEFORE)
    stand.up()
    old = {one.urn for one in reading(stand.export(), "state.json").after}
    (stand.folder / "infra" / "__main__.py").write_text(AFTER, encoding="utf-8")
    offline = preview(stand.name, stand.folder).resources
    aliased = [one for one in offline if one.options.aliases]
    assert {one.name for one in aliased} == ALIASED
    for one in aliased:
        assert set(one.options.aliases) <= old - {each.urn for each in offline}, one.urn
    assert set(stand.up()) <= {"same", "update"}
    assert {one.urn for one in reading(stand.export(), "state.json").after} == {one.urn for one in offline}
