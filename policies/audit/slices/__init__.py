"""The verdict on a slice, whatever it is made of: its hosts, its duty cycles, the heartbeats of its training."""
