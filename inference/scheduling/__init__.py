"""Who is answered when: admission, turns, fairness, and what a listener hears."""
