"""Returns, ended peers, and groups that teach nothing."""

import torch

from turngym.training.advantages.groups import (
    group_sizes,
    group_sums,
    held,
    not_kept,
    returns_to_go,
    spread,
)

NAN = float("nan")


def test_returns_to_go_match_hand_computation() -> None:
    rewards = torch.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, NAN]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    # gamma = 1/2: 1 + (2 + 4/2)/2 = 3, 2 + 4/2 = 4, 4; and 3 + 5/2 = 5.5, 5
    got = returns_to_go(rewards, mask, 0.5)
    assert got.tolist() == [[3.0, 4.0, 4.0], [5.5, 5.0, 0.0]]
    assert returns_to_go(rewards, mask, 1.0).tolist() == [[7.0, 6.0, 4.0], [8.0, 5.0, 0.0]]
    assert returns_to_go(rewards, mask, 0.0).tolist() == [[1.0, 2.0, 4.0], [3.0, 5.0, 0.0]]


def test_an_ended_episode_holds_the_return_of_its_last_turn() -> None:
    returns = torch.tensor([[3.0, 4.0, 4.0], [5.5, 5.0, 0.0], [7.0, 0.0, 0.0]])
    mask = torch.tensor([[True, True, True], [True, True, False], [True, False, False]])
    assert held(returns, mask).tolist() == [[3.0, 4.0, 4.0], [5.5, 5.0, 5.0], [7.0, 7.0, 7.0]]


def test_sums_and_sizes_go_by_id_never_by_place() -> None:
    group = torch.tensor([40, 7, 40, 2, 7, 40])
    values = torch.tensor([[1.0], [2.0], [4.0], [8.0], [16.0], [32.0]])
    assert group_sums(values, group).squeeze(1).tolist() == [37, 18, 37, 8, 18, 37]
    assert group_sizes(group).tolist() == [3, 2, 3, 1, 2, 3]


def test_spread_is_the_std_over_members_less_one_for_each_turn() -> None:
    numbers = torch.tensor([[1.0, 5.0], [3.0, 5.0], [9.0, 1.0], [8.0, 4.0]], dtype=torch.float64)
    group = torch.tensor([0, 0, 1, 0])
    # turn 0 of group 0: 1, 3, 8 with mean 4: (9 + 1 + 16) / 2 = 13; turn 1: 5, 5, 4: (1/9 + 1/9 + 4/9) / 2 = 1/3
    wanted = torch.tensor(
        [[13.0, 1 / 3], [13.0, 1 / 3], [0.0, 0.0], [13.0, 1 / 3]], dtype=torch.float64
    ).sqrt()
    torch.testing.assert_close(spread(numbers, group), wanted)


def test_groups_of_one_and_flat_groups_are_told_apart() -> None:
    # group 1: one member; 2: flat; 3: one turn of one member differs; 4: differs in a slot nobody played
    centred = torch.tensor(
        [[5.0, 0.0], [0.0, 0.0], [0.0, 9e-7], [0.0, 0.0], [0.0, -2e-6], [0.0, NAN], [0.0, 7.0]]
    )
    mask = torch.tensor([[True, True]] * 5 + [[True, False]] * 2)
    reasons = not_kept(centred, mask, torch.tensor([1, 2, 2, 3, 3, 4, 4]))
    assert reasons["group_of_one"].tolist() == [True, False, False, False, False, False, False]
    assert reasons["flat_group"].tolist() == [False, True, True, False, False, True, True]
