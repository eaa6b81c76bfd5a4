"""The engine in this process: transformers, a cache kept across turns, rows that join and leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from turngym import seeding
from turngym.agents.engines.base import Completion, FinishReason, Request
from turngym.agents.engines.draw import draw_tokens
from turngym.agents.engines.slot_cache import SlotCache
from turngym.agents.language_model import LanguageModel
from turngym.errors import ConfigError

PREFILL_SHARE = 0.25
"""Requests wait until they are this share of the rows that run, so that prefill batches are worth their call."""


@dataclass(slots=True)
class _Message:
    """A message being written."""

    request: Request
    uniforms: np.ndarray  # (max_new_tokens,) draws of this turn
    token_ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)


class LocalEngine:
    """Batched decoding over slots of a kept cache.

    Rows of the buffer are ordered: first the running ones, then the others. A request's prompt is compared
    with the ids that its episode's row holds, and only what is new is prefilled. Equal first prompts in one
    batch (the members of a group) are prefilled once and copied.

    Args:
        model: a causal model, used in place; `load(None, version)` tells that its weights have changed.
    """

    def __init__(self, model: PreTrainedModel, *, version: int = 0) -> None:
        attention = model.config._attn_implementation
        if attention not in ("sdpa", "eager"):
            raise ConfigError(
                f"The local engine cannot mask {attention!r} attention. Load the model with attn_implementation='sdpa'."
            )
        # Eager attention adds its mask to the scores, so True and False would shift them by 1 and 0.
        self._adds_mask = attention == "eager"
        self.version = version
        self._lm = LanguageModel.of(model)
        self._device = model.device
        self._dtype = model.dtype
        self._open: dict[int, int] = {}  # episode -> id of its request that waits or is being written
        self._cancelled: set[int] = set()
        self._waiting: list[Request] = []
        self._running: list[_Message] = []
        self._episodes: list[int | None] = []  # which episode each row of the buffer belongs to
        self._held: dict[int, list[int]] = {}  # ids whose keys and values the row holds
        self._reset()

    def submit(self, request: Request) -> None:
        limit = getattr(self._lm.model.config, "max_position_embeddings", None)
        needed = len(request.prompt_ids) + request.sampling.max_new_tokens
        if limit is not None and needed > limit:
            raise ConfigError(
                f"A prompt of {len(request.prompt_ids)} tokens and {request.sampling.max_new_tokens} new ones exceed "
                f"the model's {limit} positions. Lower agent.max_context."
            )
        if not request.prompt_ids:
            raise ConfigError(f"The prompt of episode {request.episode} is empty. Give at least one token.")
        if request.episode in self._open:
            raise ConfigError(
                f"Episode {request.episode} is being written. Wait for its completion, or cancel it."
            )
        self._open[request.episode] = request.id
        self._waiting.append(request)

    def step(self) -> list[Completion]:
        done = self._take_cancelled()
        waiting, running = len(self._waiting), len(self._running)
        if waiting and waiting >= PREFILL_SHARE * running:
            return done + self._prefill()
        return done + (self._decode() if running else [])

    def cancel(self, request_id: int) -> None:
        # A request that has ended is left alone: its id may come again.
        if request_id in self._open.values():
            self._cancelled.add(request_id)

    def release(self, episode: int) -> None:
        if episode in self._open:
            raise ConfigError(f"Episode {episode} is being written. Cancel its request first.")
        self._held.pop(episode, None)
        if episode in self._episodes:
            self._episodes[self._episodes.index(episode)] = None
        if not self._held and not self._running:
            # A fresh order, so that a rollout's batches do not depend on the ones before it.
            self._episodes = []

    def fork(self, episode: int, to: int) -> None:
        if episode not in self._held or to in self._open:
            raise ConfigError(
                f"Episode {episode} cannot be copied to {to}: it holds nothing, or {to} is being written."
            )
        held = self._held[episode]
        self._copy(self._episodes.index(episode), self._row_of(to), len(held))
        self._held[to] = list(held)

    @torch.no_grad()
    def score(self, token_ids: Sequence[int], *, temperature: float = 1.0) -> Tensor:
        if len(token_ids) < 2:
            return torch.zeros(0)
        ids = torch.tensor([list(token_ids)], device=self._device)
        self._lm.model.eval()
        hidden = self._lm.hidden(input_ids=ids[:, :-1], use_cache=False)[0]
        log_probs = torch.log_softmax(self._lm.logits(hidden) / temperature, dim=-1)
        return log_probs.gather(1, ids[0, 1:].unsqueeze(1)).squeeze(1)

    def load(self, weights: Mapping[str, Tensor] | None, version: int) -> None:
        if self._open:
            raise ConfigError(
                "Weights cannot change while messages are being written. Finish the rollout first."
            )
        if weights is not None:
            self._lm.model.load_state_dict(dict(weights))
        self.version = version
        self._reset()

    def _reset(self) -> None:
        self._cache = SlotCache(self._lm.model.config, 0, self._dtype, self._device)
        self._episodes = []
        self._held = {}

    def _take_cancelled(self) -> list[Completion]:
        if not self._cancelled:
            return []
        waiting = [request for request in self._waiting if request.id in self._cancelled]
        running = [message for message in self._running if message.request.id in self._cancelled]
        self._waiting = [request for request in self._waiting if request.id not in self._cancelled]
        self._cancelled.clear()
        self._leave(running)
        done = [self._completion(_Message(request, np.empty(0)), "cancelled") for request in waiting]
        return done + [self._completion(message, "cancelled") for message in running]

    @torch.no_grad()
    def _prefill(self) -> list[Completion]:
        requests = sorted(self._waiting, key=lambda request: request.episode)
        self._waiting = []
        leaders, followers = self._share_first_prompts(requests)
        first = len(self._running)
        for request in requests:
            self._row_of(request.episode)
            self._keep_common_prefix(request)
        self._arrange([request.episode for request in leaders + followers], first)
        held = [self._held[request.episode] for request in leaders]
        new = [list(request.prompt_ids[len(ids) :]) for request, ids in zip(leaders, held, strict=True)]
        hidden = self._forward(first, [len(ids) for ids in held], new)
        last = hidden[torch.arange(len(new)), torch.tensor([len(ids) - 1 for ids in new])]
        logits = self._lm.logits(last)
        for request, ids in zip(leaders, new, strict=True):
            self._held[request.episode] += ids
        rows = {tuple(request.prompt_ids): row for row, request in reversed(list(enumerate(leaders)))}
        sources = [rows[tuple(request.prompt_ids)] for request in followers]
        reach = max(len(request.prompt_ids) for request in requests)
        self._cache.move(
            [first + row for row in sources], [first + len(leaders) + i for i in range(len(followers))], reach
        )
        for request in followers:
            self._held[request.episode] = list(request.prompt_ids)
        joining = [self._message(request) for request in leaders + followers]
        self._running += joining
        return self._sample(joining, torch.cat([logits, logits[sources]]) if sources else logits)

    @torch.no_grad()
    def _decode(self) -> list[Completion]:
        lengths, new = [], []
        for message in self._running:
            held = self._held[message.request.episode]
            lengths.append(len(held))
            new.append(message.token_ids[-1:])
            held += message.token_ids[-1:]
        hidden = self._forward(0, lengths, new)
        return self._sample(self._running, self._lm.logits(hidden[:, 0]))

    def _forward(self, first: int, lengths: list[int], new: list[list[int]]) -> Tensor:
        """(N, Q, H) hidden states of the new tokens of rows first.., behind what each row holds."""
        widest = max(len(ids) for ids in new)
        held = torch.tensor(lengths, device=self._device)
        self._cache.reserve(len(self._episodes), max(lengths) + widest)
        ids = torch.tensor([one + [0] * (widest - len(one)) for one in new], device=self._device)
        positions = held.unsqueeze(1) + torch.arange(widest, device=self._device)
        reach = torch.arange(max(lengths) + widest, device=self._device)
        mask = reach <= positions.unsqueeze(2)  # (N, Q, L): a token sees its own row up to itself
        if self._adds_mask:
            mask = torch.zeros(mask.shape, dtype=self._dtype, device=self._device).masked_fill(
                ~mask, torch.finfo(self._dtype).min
            )
        # The filler behind a short row stays within the positions that the model knows.
        last = held + torch.tensor([len(one) - 1 for one in new], device=self._device)
        self._cache.aim(first, held, widest)
        self._lm.model.eval()
        return self._lm.hidden(
            input_ids=ids,
            position_ids=torch.minimum(positions, last.unsqueeze(1)),
            attention_mask=mask.unsqueeze(1),
            past_key_values=self._cache,
            use_cache=True,
        )

    def _sample(self, messages: list[_Message], logits: Tensor) -> list[Completion]:
        """Adds one token to each message and returns those that end by it."""
        drawn = draw_tokens(
            logits,
            torch.tensor([m.request.sampling.temperature for m in messages], device=self._device),
            torch.tensor([m.uniforms[len(m.token_ids)] for m in messages], device=self._device),
        )
        ids, log_probs = drawn.token_ids.tolist(), drawn.log_probs.tolist()
        done: list[tuple[_Message, FinishReason]] = []
        for message, token, log_prob in zip(messages, ids, log_probs, strict=True):
            message.token_ids.append(token)
            message.log_probs.append(log_prob)
            if token in message.request.sampling.stop_ids:
                done.append((message, "stop"))
            elif len(message.token_ids) >= message.request.sampling.max_new_tokens:
                done.append((message, "length"))
        self._leave([message for message, _ in done])
        return [self._completion(message, reason) for message, reason in done]

    def _leave(self, leaving: list[_Message]) -> None:
        """Takes messages out of the running ones; the rows of those that stay move to the front."""
        if not leaving:
            return
        gone = {message.request.id for message in leaving}
        staying = [message for message in self._running if message.request.id not in gone]
        self._gather([message.request.episode for message in staying])
        by_episode = {message.request.episode: message for message in staying}
        self._running = [
            by_episode[episode] for episode in self._episodes[: len(staying)] if episode is not None
        ]

    def _gather(self, episodes: list[int]) -> None:
        """Brings the rows of some episodes to the front, in any order; only rows outside it move."""
        members = set(episodes)
        front = self._episodes[: len(episodes)]
        movers = iter([episode for episode in self._episodes[len(front) :] if episode in members])
        self._arrange([episode if episode in members else next(movers) for episode in front], 0)

    def _arrange(self, episodes: Sequence[int | None], first: int) -> None:
        """Brings the rows of some episodes to the places first.., in the given order, by swaps."""
        order = list(self._episodes)
        for place, episode in enumerate(episodes, start=first):
            other = order.index(episode)
            order[place], order[other] = order[other], order[place]
        moved = [(place, e) for place, e in enumerate(order) if e is not None and self._episodes[place] != e]
        sources = [self._episodes.index(episode) for _, episode in moved]
        reach = max((len(self._held[episode]) for _, episode in moved), default=0)
        self._cache.move(sources, [place for place, _ in moved], reach)
        self._episodes = order

    def _copy(self, source: int, target: int, reach: int) -> None:
        self._cache.reserve(len(self._episodes), reach)
        self._cache.move([source], [target], reach)

    def _row_of(self, episode: int) -> int:
        """The row of an episode, a free or new one where it has none."""
        if episode in self._held:
            return self._episodes.index(episode)
        self._held[episode] = []
        # Rows of the front belong to running messages, so the first free row is behind them.
        if None in self._episodes:
            row = self._episodes.index(None)
            self._episodes[row] = episode
            return row
        self._episodes.append(episode)
        self._cache.reserve(len(self._episodes), 0)
        return len(self._episodes) - 1

    def _keep_common_prefix(self, request: Request) -> None:
        """Forgets what the row holds beyond the prompt; at least one token is left to be prefilled."""
        held, prompt = self._held[request.episode], list(request.prompt_ids)
        common = len(held)
        if held != prompt[:common]:
            pairs = zip(held, prompt, strict=False)
            common = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(held), len(prompt)))
        del held[min(common, len(prompt) - 1) :]

    def _share_first_prompts(self, requests: list[Request]) -> tuple[list[Request], list[Request]]:
        leaders, followers, seen = [], [], set()
        for request in requests:
            prompt = tuple(request.prompt_ids)
            if request.episode not in self._held and prompt in seen:
                followers.append(request)
            else:
                leaders.append(request)
                if request.episode not in self._held:
                    seen.add(prompt)
        return leaders, followers

    def _message(self, request: Request) -> _Message:
        stream, count = request.stream, request.sampling.max_new_tokens
        draws = seeding.turn_uniforms(stream.seed, stream.episode, stream.attempt, stream.turn, count)
        return _Message(request, draws)

    def _completion(self, message: _Message, reason: FinishReason) -> Completion:
        del self._open[message.request.episode]
        return Completion(
            message.request.id,
            message.request.episode,
            tuple(message.token_ids),
            tuple(message.log_probs),
            reason,
            self.version,
        )
