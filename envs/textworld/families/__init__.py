"""Families of games: how the size of a game is written, and what an environment must know of each."""
