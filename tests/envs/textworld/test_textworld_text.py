"""Cleaning of Inform's text."""

import pytest

from turngym.envs.textworld.text import named_option, read_intro, read_reply

pytestmark = pytest.mark.textworld

STATUS = "\n>                                      -= Studio =-0/1"


def test_a_reply_loses_trace_prompt_and_status_line() -> None:
    raw = (
        "\n[removing the key from the case]\n[(1) taking the key]\nYou take the KEY\nfrom the case.\n"
        "[(1) taking the key - succeeded]\n\n[removing the key from the case - succeeded]\n" + STATUS
    )
    reply = read_reply(raw)
    assert reply.text == "you take the key from the case."
    assert reply.events == ("removing the key from the case",)
    assert reply.acted and not reply.won and not reply.lost


def test_the_points_stand_in_the_status_line() -> None:
    assert read_reply("\nTaken.\n\n>      -= Studio =-7/12").points == 7
    assert read_reply("\n -= Studio =-7/12 \n\n>   ").points == 0


def test_lines_of_a_recipe_stay_apart() -> None:
    raw = (
        "\n[examining the cookbook]\nYou read:\n\nIngredients:\nred egg\n  oil\n\nDirections:\nfry the red egg\n"
        "  prepare meal\n\n\n[examining the cookbook - succeeded]\n" + STATUS
    )
    wanted = "you read: ingredients: red egg, oil. directions: fry the red egg, prepare meal."
    assert read_reply(raw).text == wanted


def test_a_failed_action_acted_without_an_event() -> None:
    reply = read_reply(
        "\n[going west]\nYou can't go that way.\n[going west - failed the can't go that way rule]\n" + STATUS
    )
    assert (reply.acted, reply.events, reply.text) == (True, (), "you can't go that way.")
    assert not read_reply("\nThat's not a verb I recognise.\n" + STATUS).acted


def test_everything_after_the_end_is_cut() -> None:
    raw = "\nYou win.\n\n\n             *** The End ***\n\nYou scored 1.\nWould you like to RESTART?\n>      -= Studio =-0/2"
    reply = read_reply(raw)
    assert reply.won and reply.text == "you win."
    assert read_reply("x\n *** You lost! ***\n").lost
    assert not read_reply('\n[answering yourself that "*** the end ***"]\nThere is no reply.\n' + STATUS).won


def test_the_intro_starts_at_the_first_room() -> None:
    raw = "  |  \\|  $$\\\nWelcome! Find the key.\n\n-= Studio =-\nA studio.\n\nGo north.\n\n>      -= Studio =-0/1"
    assert read_intro(raw) == "-= studio =- a studio. go north."


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("open box", 1),
        ("insert key into red box", 2),
        ("open blue box.", 3),
        ("open red", None),
        ("take box from red box", None),
    ],
)
def test_an_option_counts_when_named_in_full_and_alone(command: str, option: int | None) -> None:
    assert named_option("which do you mean, the box, the red box or the blue box?", command) == option
    assert named_option("what do you want to open?", command) is None
