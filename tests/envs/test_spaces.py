"""The space of all strings."""

import copy
from typing import Any

import pytest
from gymnasium import spaces

from turngym.envs.spaces import Unicode

# Case 52: what environments say, and Gymnasium's default text space refuses.
OBSERVATIONS = ["go north", "You see a box.", "", "café", "xxxxxxxxxxxxx", "ok"]


def test_every_string_is_inside() -> None:
    assert [spaces.Text(12).contains(text) for text in OBSERVATIONS] == [False] * 5 + [True]
    assert all(text in Unicode() for text in [*OBSERVATIONS, "\n\t ", "漢字🙂", "\x00", "x" * 100_000])


@pytest.mark.parametrize("value", [None, 3, b"ok", ["ok"], ("ok",)])
def test_nothing_else_is_inside(value: Any) -> None:
    assert value not in Unicode()


def test_samples_are_members_and_follow_the_seed() -> None:
    one, other = Unicode(seed=5), Unicode(seed=5)
    samples = [one.sample() for _ in range(200)]
    assert samples == [other.sample() for _ in range(200)]
    assert all(sample in one for sample in samples)
    assert (
        "" in samples and any("\n" in sample for sample in samples) and not all(s.isascii() for s in samples)
    )


def test_sample_takes_no_mask() -> None:
    with pytest.raises(ValueError, match="no mask"):
        Unicode().sample(mask=1)


def test_all_unicode_spaces_are_equal() -> None:
    assert Unicode(seed=1) == Unicode(seed=2) == copy.deepcopy(Unicode())
    assert len({Unicode(), Unicode()}) == 1
    assert Unicode() != spaces.Text(12)
    assert repr(Unicode()) == "Unicode()"
