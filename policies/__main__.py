"""Starts the policy pack. Pulumi runs this file; the pack serves until Pulumi ends it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pulumi
from pulumi_policy import PolicyPack
from pulumi_policy import policy as sdk

from policies.pack import NAME, build_policies, keep_secrets


def take_settings() -> None:
    """Make the SDK keep the settings of the stack, which Pulumi 3.274 sends in the call `ConfigureStack`.

    Of that call the SDK takes the tags alone; it reads settings from the environment, where engines put them before.
    Without this the pack would know no waiver of the stack. It has no hook for that: its answer is wrapped.
    """
    servicer: Any = vars(sdk)["_PolicyAnalyzerServicer"]
    answer = servicer.ConfigureStack

    def configure(self: Any, request: Any, context: Any) -> Any:
        for key, text in readable(request.config, request.config_secret_keys).items():
            pulumi.runtime.set_config(key, text)
        return answer(self, request, context)

    servicer.ConfigureStack = configure


def readable(settings: Mapping[str, str], secret: Collection[str]) -> dict[str, str]:
    """The settings without those that are secret: the engine sends them decrypted, and no rule may read one."""
    hidden = set(secret)
    return {key: text for key, text in settings.items() if key not in hidden}


if __name__ == "__main__":
    keep_secrets()
    take_settings()
    PolicyPack(NAME, build_policies())
