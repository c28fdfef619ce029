"""From tokens to what a client reads: bytes, characters, stop strings."""
