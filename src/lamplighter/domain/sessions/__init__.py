"""Sessions: which should run, which are observed, and what the patrol does about the difference."""
