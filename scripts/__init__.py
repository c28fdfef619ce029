"""The door: the `spotrail` command, one file a command, no logic of its own."""
