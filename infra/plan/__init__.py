"""Decisions about a stack that can be wrong: pure functions over the tables of `policies.hardware`, without Pulumi."""
