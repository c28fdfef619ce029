"""What would stop the waste, done: a plan of steps that a person can review, and its application, safe to run twice."""
