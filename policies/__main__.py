"""Starts the policy pack. Pulumi runs this file; the pack serves until Pulumi ends it."""

from pulumi_policy import PolicyPack

from policies.pack import NAME, build_policies, keep_secrets

if __name__ == "__main__":
    keep_secrets()
    PolicyPack(NAME, build_policies())
