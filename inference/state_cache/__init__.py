"""States of prompts that were read before, kept on the host."""
