"""Where weights are: a disk, a FUSE mount, a bucket. Each becomes a folder, and a style in which it is best read."""
