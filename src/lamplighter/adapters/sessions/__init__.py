"""Session providers, one module or package each."""
