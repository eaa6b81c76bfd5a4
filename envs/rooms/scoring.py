"""Points of a state (DEFINITIONS section 1)."""


def score(quest_length: int, remaining: int | None, before: float) -> float:
    """Quest length minus the commands that the shortest plan still needs: 0 at the start, the length when solved.

    It is negative farther away than the start. Where no plan exists (`remaining` None) all progress is void:
    0, or `before` where that is less, so that losing never pays.
    """
    return min(0.0, before) if remaining is None else float(quest_length - remaining)
