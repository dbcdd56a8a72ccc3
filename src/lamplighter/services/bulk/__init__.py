"""Bulk actions: one thing done to many runs."""
