"""A demonstration as tokens, by the same path that a rollout takes."""

from turngym.agents.action_formats import ActionFormat
from turngym.agents.chat_template import ChatTemplate
from turngym.agents.transcript import Transcript
from turngym.types import Author, Demonstration, Episode, Segment


def render_demonstration(
    demo: Demonstration, template: ChatTemplate, fmt: ActionFormat
) -> tuple[Segment, ...]:
    """Segments that a policy would have written in this episode, byte for byte; log-probs are 0."""
    transcript = Transcript()
    template.open(transcript, told(demo.instructions, fmt), demo.observations[0])
    experts: tuple[Author, ...] = ("expert",)
    authors = demo.authors or experts * len(demo.commands)
    for turn, (command, author) in enumerate(zip(demo.commands, authors, strict=True)):
        if turn:
            template.reply(transcript, demo.observations[turn], turn=turn, cut=False)
        transcript.add(template.message_ids(fmt.write(command)), turn=turn, author=author)
    return transcript.segments()


def demonstration_of(episode: Episode) -> Demonstration:
    """An episode's text, with the author of each command."""
    return Demonstration(
        task=episode.task,
        instructions=episode.instructions,
        observations=(episode.observation, *(turn.observation for turn in episode.turns)),
        commands=tuple(turn.command for turn in episode.turns),
        authors=tuple(turn.author for turn in episode.turns),
    )


def told(instructions: str, fmt: ActionFormat) -> str:
    """Instructions with the format's own syntax text behind them."""
    return f"{instructions} {fmt.syntax}".strip()
