"""Lamplighter: one daemon that looks after a city of coding agents."""

__version__ = "0.1.0"
