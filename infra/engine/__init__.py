"""The local engine behind the offline preview: it stands where Pulumi's own would, and records."""
