"""A person plays an environment in the terminal: `turngym play`. (`turngym.play` in Python lets an agent play.)"""
