"""Two estimates side by side, and an estimate that was kept in a file."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from policies.changes import Op, Reading, SourceKind
from policies.comparison import Side, compare, comparison_report
from policies.errors import InputError
from policies.estimate.document import is_estimate, parse_estimate
from policies.estimate.engine import estimate
from policies.estimate.model import Estimate
from policies.judging import stack_report
from policies.money import Amount
from policies.prices.book import PriceBook, load_book
from policies.report.json import stack_json
from policies.resources import UNKNOWN, Resource, ResourceSet, Value
from policies.usage import Usage

AS_OF = datetime.date(2026, 11, 15)


@pytest.fixture(scope="module")
def book() -> PriceBook:
    return load_book(Path(__file__).parent / "estimate" / "book.csv")


def volume(name: str, throughput: Value = 400) -> Resource:
    """A Hyperdisk ML volume of 200 GiB: 16.00, and 0.12 for each MiB/s."""
    return Resource(
        urn=f"urn:pulumi:dev::acme::gcp:compute/disk:Disk::{name}",
        type="gcp:compute/disk:Disk",
        name=name,
        inputs={"type": "hyperdisk-ml", "size": 200, "provisionedThroughput": throughput, "zone": "us-central1-b"},
    )


@pytest.fixture
def priced(book: PriceBook) -> Any:
    return lambda *resources: estimate(ResourceSet(resources), Usage(), book, AS_OF)


def ops(one: Estimate, two: Estimate) -> dict[str, Op]:
    change = compare(Side(name="one", after=one), Side(name="two", after=two))
    return {each.urn.rpartition("::")[2]: each.op for each in change.resources}


def test_each_resource_has_its_step_and_the_sum_is_exact(priced: Any) -> None:
    """64 in common; 64 goes; 160 comes in place of 64; 64 comes."""
    one = priced(volume("same"), volume("goes"), volume("grows"))
    two = priced(volume("same"), volume("grows", 1200), volume("comes"))
    assert ops(one, two) == {"same": Op.SAME, "goes": Op.DELETE, "grows": Op.UPDATE, "comes": Op.CREATE}
    change = compare(Side(name="one", after=one), Side(name="two", after=two))
    assert change.delta == Amount.by_month(-64 + 96 + 64)
    assert sum((each.delta.monthly for each in change.resources), Decimal(0)) == 96


def test_two_stacks_of_one_program_are_compared_by_the_names_in_it(priced: Any) -> None:
    other = replace(volume("a"), urn=volume("a").urn.replace("urn:pulumi:dev::", "urn:pulumi:prod::"))
    (each,) = compare(Side(name="dev", after=priced(volume("a"))), Side(name="prod", after=priced(other))).resources
    assert (each.op, each.urn) == (Op.SAME, other.urn)


def test_two_of_the_same_have_no_difference(priced: Any) -> None:
    one, two = priced(volume("a"), volume("b", UNKNOWN)), priced(volume("b", UNKNOWN), volume("a"))
    change = compare(Side(name="one", after=one), Side(name="two", after=two))
    assert {each.op for each in change.resources} == {Op.SAME}
    assert not change.delta


def test_previews_of_one_stack_may_hide_what_they_do_not_change(priced: Any) -> None:
    """The first grows a, the second grows b; each hides the other one, which stands at 64."""
    one = Side(name="one", after=priced(volume("a", 1200)), before=priced(volume("a")), hidden=1)
    two = Side(name="two", after=priced(volume("b", 1200)), before=priced(volume("b")), hidden=1)
    change = compare(one, two)
    assert {each.urn.rpartition("::")[2]: each.delta.monthly for each in change.resources} == {"a": -96, "b": 96}
    assert not change.whole


def test_a_state_of_the_stack_shows_what_the_preview_hides(priced: Any) -> None:
    """a grows by 96; b, which the preview hides, stands at 64 on both sides."""
    stands = priced(volume("a"), volume("b"))
    state = Side(name="state", after=stands, before=stands)
    preview = Side(name="preview", after=priced(volume("a", 1200)), before=priced(volume("a")), hidden=1)
    for first, second, delta in ((state, preview, 96), (preview, state, -96)):
        change = compare(first, second)
        assert {each.urn.rpartition("::")[2]: each.delta.monthly for each in change.resources} == {"a": delta, "b": 0}
        assert (change.delta, change.whole) == (Amount.by_month(delta), True)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"stack": "prod"}, "one is of acme/dev and two of acme/prod"),
        ({"project": "reef"}, "one is of acme/dev and two of reef/dev"),
        ({"before": None}, "two does not say what stands"),
    ],
)
@pytest.mark.parametrize("hidden", [0, 1])
def test_what_is_hidden_is_not_made_up_from_another_stack(
    priced: Any, other: dict[str, Any], why: str, hidden: int
) -> None:
    more: dict[str, Any] = {"project": "acme", "stack": "dev", "before": priced(), **other}
    one = Side(
        name="one", after=priced(volume("a", 1200)), before=priced(volume("a")), hidden=1, project="acme", stack="dev"
    )
    two = Side(name="two", after=priced(volume("b")), hidden=hidden, **more)
    with pytest.raises(InputError, match=f"^one hides 1 resource .*and {why}: .*\n  Make the preview .*--show-sames$"):
        compare(one, two)


def test_what_a_preview_deletes_does_not_stand(priced: Any) -> None:
    one = Side(name="one", after=priced(), before=priced(volume("a")), hidden=1)
    two = Side(name="two", after=priced(volume("a", 1200)), before=priced(volume("a")), hidden=1)
    (each,) = compare(one, two).resources
    assert (each.op, each.delta.monthly) == (Op.CREATE, Decimal(160))


def test_two_currencies_are_not_compared() -> None:
    one, two = (Side(name=name, after=Estimate(currency=name, resources=())) for name in ("USD", "EUR"))
    with pytest.raises(InputError, match="USD is in USD and EUR in EUR; price both with one book"):
        compare(one, two)


def kept(book: PriceBook, *resources: Resource, hidden: int = 0) -> bytes:
    reading = Reading(kind=SourceKind.STATE, project="acme", stack="dev", after=ResourceSet(resources), hidden=hidden)
    return stack_json(stack_report(reading, Usage(), book, AS_OF, place="x")).encode()


@pytest.mark.parametrize("throughput", [400, UNKNOWN])
def test_an_estimate_survives_its_file(book: PriceBook, priced: Any, throughput: Value) -> None:
    text = kept(book, volume("a", throughput), volume("b"))
    assert is_estimate(text)
    again = parse_estimate(text, "x")
    real = priced(volume("a", throughput), volume("b"))
    assert (again.amount, again.complete, again.currency) == (real.amount, real.complete, real.currency)
    assert set(ops(again, real).values()) == {Op.SAME}


def test_what_is_missing_survives_its_file(book: PriceBook, priced: Any) -> None:
    far = replace(volume("far"), inputs={**volume("far").inputs, "zone": "europe-west4-a"})
    again = parse_estimate(kept(book, far), "x")
    assert not again.complete
    assert compare(Side(name="one", after=again), Side(name="two", after=priced(far))).exact


def test_a_report_of_a_comparison_names_both(book: PriceBook, priced: Any) -> None:
    one, two = Side(name="a.json", after=priced(), notes=("cut",)), Side(name="b.json", after=priced(volume("v")))
    report = comparison_report(one, two, book, AS_OF, usage=("all",))
    assert (report.place, report.stack, report.notes) == ("a.json b.json", "b.json", ("a.json: cut",))
    assert json.loads(stack_json(report))["delta"]["monthly"] == "64.00"


def broken(book: PriceBook, **more: Any) -> bytes:
    return json.dumps({**json.loads(kept(book, volume("a"))), **more}).encode()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"schema": "spotrail.estimate/2"}, r'^x: schema is "spotrail.estimate/2"; .* must be .spotrail.estimate/1.'),
        ({"currency": 5}, "^x: currency is 5; .* must be text"),
        ({"fresh": "yes"}, "^x: fresh is .yes.; .* must be true or false"),
        ({"resources": {}}, "^x: resources is {}; .* must be a list"),
        ({"resources": [5]}, r"^x: resources\[0\] is 5; .* must be an object"),
        ({"resources": [{"urn": "u"}]}, r"^x: resources\[0\]\.type is null; .* must be text"),
        ({"monthly": "1e5"}, '^x: monthly is "1e5"; .* must be a decimal number'),
        ({"monthly": "65.00"}, "^x: monthly is .65.00.; .* must be the sum of the components, 64.00"),
        ({"monthly": None}, "^x: has no total: .*hides unchanged resources.\n  Make it from .*--show-sames"),
    ],
)
def test_an_estimate_that_cannot_be_is_refused(book: PriceBook, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_estimate(broken(book, **more), "x")


def test_an_estimate_with_a_resource_twice_is_refused(book: PriceBook) -> None:
    (entry,) = json.loads(kept(book, volume("a")))["resources"]
    with pytest.raises(InputError, match=r"^x: resources has .*::a twice; a URN is unique"):
        parse_estimate(broken(book, resources=[entry, entry], monthly="128.00"), "x")


@pytest.mark.parametrize("text", [b'{"schema": NaN}', b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(InputError, match=r"^x: is no spotrail\.estimate/1: "):
        parse_estimate(text, "x")
