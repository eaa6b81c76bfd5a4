"""Losses and averages: pure functions, one file each."""
