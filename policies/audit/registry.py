"""Which auditors there are: every module of `policies.audit.auditors` that has an `AUDITOR`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from policies.audit import auditors as package
from policies.audit.context import Auditor


@cache
def auditors() -> Mapping[str, Auditor]:
    """Every auditor by the name of its module, in the order of the names."""
    found: dict[str, Auditor] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        candidate = getattr(import_module(f"{package.__name__}.{info.name}"), "AUDITOR", None)
        if isinstance(candidate, Auditor):
            found[info.name] = candidate
    return MappingProxyType(found)
