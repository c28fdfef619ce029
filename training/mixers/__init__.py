"""Token mixers: how a token learns of the ones before it. One mixer a file, all over `recurrence`."""
