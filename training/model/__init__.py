"""The language model: blocks of a mixer and a gated feed-forward, and the loss."""
