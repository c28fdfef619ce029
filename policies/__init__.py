"""What it costs and what is allowed: prices, estimates, rules, reports. Never imports pulumi, jax or numpy."""
