"""The verdict on a volume: who reads it and how fast, what it wastes, and the words for both."""
