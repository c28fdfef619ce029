"""Optimizers: one optax transformation a file, every one of them under the guard of `guard`."""
