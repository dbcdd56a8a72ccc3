"""Sessions: what agents should run, what is seen of them, and what the patrol makes of the difference."""
