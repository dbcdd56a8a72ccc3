"""How to start known agent programs, and how to read their output."""
