"""The engine: slots of state on a device, and the programs that turn tokens into tokens."""
