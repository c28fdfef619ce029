"""What exists: the Pulumi program, its components, and the offline preview."""
