"""Checkpoints: complete or not there; damage is found, and the one before is taken.

A checkpoint is a folder `{step:08d}-{attempt}/` in a root, which is a folder of this machine or `gs://bucket/prefix`:

    OWNER.json           first: which run and attempt made it, and where
    host-{i}/NAME/       an array as zarr 3 with crc32c, what one host has of it; the grid is that of any mesh
    PART-{i}.json        what one host has written: leaf, shape, slice, dtype, object, crc32c
    MANIFEST.json        last, and only where it is not there yet: the digest of every object, fingerprint, and what the
                         loop says beside its arrays
    QUARANTINED.json     by whoever found it damaged

Beside them, `LEASE-{run}.json` says which attempt may commit, and what has been committed; `tokenizer-{digest}.json`
is what an export of them needs besides (`tokenizer_file`). Where to begin:

- `checkpointer`: save beside the step, commit before a deadline; over `staging` (copies) and `writing` (the order)
- `discovery`: the newest valid one; `restoring`: back onto any mesh; `inspection`: list, verify, remove
- `store`: a folder or a bucket, with preconditions; `lease`, `owner`: who may commit and delete; `numbering`: how
  attempts are called
- `retention`: what stays; `collection`: deleting the rest
"""
