"""The training image: language models on capacity that can vanish.

`python -m training --config FILE` trains; `prepare`, `checkpoints` and `export` stand beside it. What each room is for:

- `data`: text -> tokens -> checksummed shards; the batch of a step as a pure function of its number
- `mixers`: linear attention and softmax, over one recurrence; `model`: the language model around them
- `optim`: PSGD-Kron, and optax's optimizers, under one guard
- `checkpoint`: complete or not there, and found out when damaged
- `loop`: the pure step, and what happens around it until the capacity goes

Errors that a user can mend are `TrainingError`; the exit codes are in `exit_codes`.
"""
