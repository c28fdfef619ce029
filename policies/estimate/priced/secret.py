"""Secrets of Secret Manager: each version bills in each place that it is replicated to, whether enabled or not."""

from __future__ import annotations

from typing import Final

from policies.estimate.market import Market, Part, bill, unknown
from policies.estimate.model import ResourceEstimate, Unpriced
from policies.estimate.registry import Priced
from policies.resources import Opaque, Resource, dig

SECRET: Final = "gcp:secretmanager/secret:Secret"
REGIONAL_SECRET: Final = "gcp:secretmanager/regionalSecret:RegionalSecret"
VERSION: Final = "gcp:secretmanager/secretVersion:SecretVersion"
REGIONAL_VERSION: Final = "gcp:secretmanager/regionalSecretVersion:RegionalSecretVersion"
REPLICAS: Final = ("replication", "userManaged", "replicas")
ITEM: Final = "secret.version"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """A version; a secret itself costs nothing."""
    if resource.type in (SECRET, REGIONAL_SECRET):
        return bill(resource, "", "secret", (), free="a secret costs nothing; its versions do")
    return bill(resource, "", "secret version", (_version(resource, market),))


def _version(resource: Resource, market: Market) -> Part:
    if resource.type == REGIONAL_VERSION:
        return market.line("version", ITEM, 1, "version-month", "global")
    secrets = market.resources.references(resource, "secret", SECRET)
    if not secrets:
        reason = "the secret is not in this stack; it decides in how many places the version bills"
        return Unpriced(item=ITEM, reason=reason)
    replicas = dig(secrets[0].inputs, *REPLICAS)
    if isinstance(replicas, Opaque):
        return unknown(replicas, "secret", *REPLICAS, decides="in how many places the version bills")
    places = len(replicas) if isinstance(replicas, tuple) and replicas else 1
    return market.line("version", ITEM, places, "version-month", "global")


PRICED: Final = Priced(types=(SECRET, REGIONAL_SECRET, VERSION, REGIONAL_VERSION), price=price)
