"""The training image. Empty until its first module lands; it may import nothing of the other rooms."""
