"""Data: text to tokens to checksummed shards, and the batch of a step as a pure function of its number."""
