"""Processes of this machine: who they are, whose they are, when they end, and ending them for good."""
