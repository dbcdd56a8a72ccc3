"""How to drive known agent programs, and how to read what they say."""
