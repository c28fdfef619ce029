"""The API of OpenAI, as pure functions: from a body to what is asked for, and from an answer to a body."""
