"""Checkpoints: complete or not there; damage is found, and the one before is taken."""
