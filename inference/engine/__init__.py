"""The engine: slots of state on a device or on several, and the programs that turn tokens into tokens."""
