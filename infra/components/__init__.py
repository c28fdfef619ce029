"""What a stack is made of: one component resource a file, with its arguments; `assembly` puts them together."""
