"""The economics of serving: what a model holds and reads, what its weights cost to load, and how both are shown.

`inference.memory_wall` and `inference.weights_plan` are the two questions; here is what they are answered from. Nothing
of it imports JAX, numpy or the model: `spotrail wall` and `spotrail weights-plan` start at once, on any machine.
"""
