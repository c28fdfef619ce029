"""What things cost: the price book, its reader, and the shipped data."""
