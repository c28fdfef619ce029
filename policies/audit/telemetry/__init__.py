"""From the points of a time series to what they say: which time each covers, and its rate, each moment once."""
