"""Weights: where they come from, what of them is read, and how they get to the device."""
