"""The serving image. Empty until its first module lands; of training it may import the model only."""
