"""The guard: an audit that runs by itself, tells what it found, and does the little that it may do alone."""
