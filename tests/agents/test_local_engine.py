"""The engine in this process: what it says equals a full forward, whatever it keeps and whoever is beside."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from turngym import seeding
from turngym.agents.engines.base import Completion, Request, Sampling, Stream
from turngym.agents.engines.local import LocalEngine
from turngym.errors import ConfigError

MakeModel = Callable[..., LlamaForCausalLM]
MAX_GAP, MEAN_GAP = 5e-5, 1e-6  # DEFINITIONS section 8
VOCABULARY = 70


def ask(
    episode: int,
    prompt: Sequence[int],
    *,
    turn: int = 0,
    temperature: float = 1.0,
    new: int = 6,
    stops: tuple[int, ...] = (),
    seed: int = 3,
    attempt: int = 0,
    request_id: int | None = None,
) -> Request:
    return Request(
        episode if request_id is None else request_id,
        episode,
        list(prompt),
        Sampling(temperature, new, stops),
        Stream(seed, episode, attempt, turn),
    )


def write(engine: LocalEngine, *requests: Request) -> dict[int, Completion]:
    """Completions by episode, with all requests in one batch."""
    for request in requests:
        engine.submit(request)
    done: dict[int, Completion] = {}
    while len(done) < len(requests):
        done |= {completion.episode: completion for completion in engine.step()}
    return done


@torch.no_grad()
def logits_of(model: PreTrainedModel, ids: Sequence[int]) -> Tensor:
    """(T, V) by one plain forward pass of the whole sequence."""
    logits: Tensor = model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0]
    return logits.float()


def gap(model: PreTrainedModel, request: Request, completion: Completion) -> Tensor:
    """(N,) distance of the completion's log-probs from a full forward's."""
    prompt, written = list(request.prompt_ids), list(completion.token_ids)
    temperature = request.sampling.temperature or 1.0
    log_probs = torch.log_softmax(
        logits_of(model, prompt + written)[len(prompt) - 1 : -1] / temperature, dim=-1
    )
    wanted = log_probs.gather(1, torch.tensor(written).unsqueeze(1)).squeeze(1)
    return (wanted - torch.tensor(completion.log_probs)).abs()


def assert_exact(model: PreTrainedModel, request: Request, completion: Completion) -> None:
    assert gap(model, request, completion).max() < MAX_GAP


def defined(model: PreTrainedModel, request: Request, completion: Completion) -> list[int]:
    """The ids by the definition: the stream's draws put into the cumulative sums of a full forward."""
    sampling, stream, written = request.sampling, request.stream, list(completion.token_ids)
    draws = seeding.turn_uniforms(
        stream.seed, stream.episode, stream.attempt, stream.turn, sampling.max_new_tokens
    )
    logits = logits_of(model, [*request.prompt_ids, *written])[len(request.prompt_ids) - 1 : -1].double()
    if sampling.temperature == 0:
        return logits.argmax(dim=1).tolist()
    sums = torch.softmax(logits / sampling.temperature, dim=1).cumsum(dim=1)
    sought = torch.from_numpy(draws[: len(written)]).unsqueeze(1) * sums[:, -1:]
    return (sums <= sought).sum(dim=1).tolist()


def assert_defined(model: PreTrainedModel, request: Request, completion: Completion) -> None:
    """Ids as the definition says, log-probs as a full forward gives them, ended where it had to."""
    assert_exact(model, request, completion)
    ids, sampling = list(completion.token_ids), request.sampling
    assert ids == defined(model, request, completion)
    assert not any(token in sampling.stop_ids for token in ids[:-1])
    if completion.finish_reason != "cancelled":
        assert (ids[-1] in sampling.stop_ids) == (completion.finish_reason == "stop")
        assert completion.finish_reason == "stop" or len(ids) == sampling.max_new_tokens


@contextmanager
def forwarded(model: PreTrainedModel) -> Iterator[list[tuple[int, int]]]:
    """The (rows, tokens) of each forward pass made inside."""
    shapes: list[tuple[int, int]] = []

    def keep(_: object, given: tuple[Tensor]) -> None:
        rows, tokens = given[0].shape
        shapes.append((rows, tokens))

    handle = model.get_input_embeddings().register_forward_pre_hook(keep)
    yield shapes
    handle.remove()


def test_log_probs_equal_a_full_forward(make_model: MakeModel) -> None:
    model = make_model()
    gaps = []
    for temperature in (1.0, 0.5, 2.0, 0.0):
        request = ask(0, [1, 5, 9, 2], temperature=temperature, new=30)
        gaps.append(gap(model, request, write(LocalEngine(model), request)[0]))
    assert torch.cat(gaps).max() < MAX_GAP and torch.cat(gaps).mean() < MEAN_GAP


def test_log_probs_equal_a_full_forward_in_a_mixed_batch(make_model: MakeModel) -> None:
    model = make_model()
    engine = LocalEngine(model)
    requests = [
        ask(e, range(1, 2 + 9 * e), temperature=(1.0, 0.0, 0.7, 1.5)[e], new=(2, 9, 5, 14)[e])
        for e in range(4)
    ]
    done = write(engine, *requests)
    assert [len(done[e].token_ids) for e in range(4)] == [2, 9, 5, 14]
    for request in requests:
        assert_exact(model, request, done[request.episode])


def test_a_row_that_joins_others_under_way_is_exact(make_model: MakeModel) -> None:
    model = make_model()
    engine = LocalEngine(model)
    requests = [ask(e, [3 + e, 7, 9], new=10) for e in range(5)]
    done: dict[int, Completion] = {}
    for request in requests:
        engine.submit(request)
        for _ in range(2):
            done |= {completion.episode: completion for completion in engine.step()}
    while len(done) < 5:
        done |= {completion.episode: completion for completion in engine.step()}
    for request in requests:
        assert_defined(model, request, done[request.episode])


def test_the_kept_cache_is_exact_across_turns_and_only_new_tokens_are_prefilled(
    make_model: MakeModel,
) -> None:
    model = make_model()
    engine = LocalEngine(model)
    prompts = {e: list(range(1, 4 + e)) for e in range(3)}
    for turn in range(6):
        requests = [ask(e, prompts[e], turn=turn, new=4) for e in prompts]
        with forwarded(model) as shapes:
            done = write(engine, *requests)
        # The last sampled token is not in the cache yet: it comes with the five of the reply.
        assert shapes == [(3, 5 if turn == 0 else 6), (3, 1), (3, 1), (3, 1)]
        for request in requests:
            assert_exact(model, request, done[request.episode])
            prompts[request.episode] += [*done[request.episode].token_ids, 7, 8, 9, turn, request.episode]
    assert len(prompts[0]) > 56


def test_a_buffer_that_has_to_grow_keeps_what_it_holds(make_model: MakeModel) -> None:
    model = make_model()
    engine = LocalEngine(model)
    first = ask(0, range(1, 60), new=3)
    write(engine, first)
    long = [ask(0, range(1, 60), turn=1, new=40), ask(1, list(range(2, 60)) * 3, new=5), ask(2, [4], new=30)]
    done = write(engine, *long)
    for request in long:
        assert_exact(model, request, done[request.episode])


def test_new_weights_drop_every_cache(make_model: MakeModel) -> None:
    # Case 18: prompt [3] under the old weights, then [3, 4] under the new ones, must be as of a fresh engine.
    model = make_model()
    engine = LocalEngine(model)
    write(engine, ask(0, [3] * 20), ask(1, [5, 6]))
    with torch.no_grad():
        for param in model.parameters():
            param.mul_(-0.7)
    engine.load(None, 5)
    request = ask(0, [3] * 20 + [4], turn=1)
    done = write(engine, request)[0]
    assert done.version == engine.version == 5
    assert_exact(model, request, done)
    assert done == replace(write(LocalEngine(model), request)[0], version=5)


def test_loaded_weights_are_those_that_play(make_model: MakeModel) -> None:
    model, other = make_model(0), make_model(1)
    engine = LocalEngine(model)
    request = ask(0, [3, 4, 5])
    write(engine, request)
    engine.load(other.state_dict(), 2)
    assert_exact(other, request, write(engine, request)[0])


def test_group_members_share_one_prefill_and_sample_apart(make_model: MakeModel) -> None:
    model = make_model()
    engine = LocalEngine(model)
    requests = [ask(e, [1, 2, 3, 4, 5, 6], new=8) for e in range(6)] + [ask(6, [1, 2, 3], new=8)]
    with forwarded(model) as shapes:
        done = write(engine, *requests)
    assert shapes[0] == (2, 6) and shapes[1] == (7, 1)
    assert len({done[e].token_ids for e in range(6)}) == 6
    for request in requests:
        assert_exact(model, request, done[request.episode])
    # Each member has a cache of its own afterwards.
    later = [ask(e, [1, 2, 3, 4, 5, 6, *done[e].token_ids, 9], turn=1) for e in range(6)]
    with forwarded(model) as shapes:
        after = write(engine, *later)
    assert shapes[0] == (6, 2)
    for request in later:
        assert_exact(model, request, after[request.episode])


@pytest.mark.parametrize(
    "second",
    [
        [1, 2, 9, 9, 9, 9, 9, 9],  # a thought dropped from the middle
        [1, 2],  # shorter than what is held
        [8, 8, 8],  # nothing in common
        [1, 2, 3, 4, 5],  # the same once more: its last token is read again
        [1, 2, 3, 4, 5, 6],
    ],
)
def test_a_rewritten_history_keeps_only_the_common_prefix(make_model: MakeModel, second: list[int]) -> None:
    model = make_model()
    engine = LocalEngine(model)
    beside = ask(1, [4, 4, 4])
    write(engine, ask(0, [1, 2, 3, 4, 5]), beside)
    request = ask(0, second, turn=1)
    with forwarded(model) as shapes:
        done = write(engine, request)[0]
    common = next((i for i, (a, b) in enumerate(zip([1, 2, 3, 4, 5], second, strict=False)) if a != b), 5)
    assert shapes[0] == (1, len(second) - min(common, len(second) - 1, 5))
    assert_defined(model, request, done)


def test_greedy_takes_the_most_likely_token_and_gives_its_log_prob_at_temperature_1(
    make_model: MakeModel,
) -> None:
    model = make_model()
    request = ask(0, [1, 2, 3], temperature=0.0, new=10)
    done = write(LocalEngine(model), request)[0]
    logits = logits_of(model, [1, 2, 3, *done.token_ids])[2:-1]
    assert logits.topk(2).values.diff().abs().min() > 1e-3
    assert list(done.token_ids) == logits.argmax(dim=1).tolist()
    assert_exact(model, request, done)


def test_a_stop_token_is_the_last_token_written_and_no_other_is_added(make_model: MakeModel) -> None:
    # Case 03: stopped early, stopped at full width, cut by length, stopped by the second stop id.
    model = make_model()
    free = write(LocalEngine(model), ask(0, [1, 2, 3], new=5))[0].token_ids
    assert len(set(free)) == 5  # so each can be made the stop
    outside = next(i for i in range(VOCABULARY) if i not in free)
    rows = {
        "early": ((free[2],), 3, "stop"),
        "at full width": ((free[4],), 5, "stop"),
        "cut": ((outside,), 5, "length"),
        "second stop": ((free[4], free[2]), 3, "stop"),
    }
    for stops, count, reason in rows.values():
        done = write(LocalEngine(model), ask(0, [1, 2, 3], new=5, stops=stops))[0]
        assert (done.token_ids, done.finish_reason) == (free[:count], reason)
        assert len(done.log_probs) == count


def test_a_stop_as_the_first_token_is_a_whole_message(make_model: MakeModel) -> None:
    model = make_model()
    engine = LocalEngine(model)
    free = write(LocalEngine(model), ask(0, [1, 2, 3]))[0].token_ids
    done = write(engine, ask(0, [1, 2, 3], stops=free[:1]), ask(1, [1, 2, 3], new=1))
    assert (done[0].token_ids, done[0].finish_reason) == (free[:1], "stop")
    assert (len(done[1].token_ids), done[1].finish_reason) == (1, "length")


def test_draws_come_from_the_stream_of_seed_episode_attempt_turn_and_token(make_model: MakeModel) -> None:
    model = make_model()
    request = ask(4, [1, 2, 3], turn=2, new=8)
    done = write(LocalEngine(model), request)[4]
    ids = done.token_ids
    assert_defined(model, request, done)
    # A shorter message is a beginning of the longer one.
    assert write(LocalEngine(model), ask(4, [1, 2, 3], turn=2, new=5))[4].token_ids == ids[:5]
    changed = [
        ask(4, [1, 2, 3], turn=3, new=8),
        ask(4, [1, 2, 3], turn=2, new=8, seed=9),
        ask(4, [1, 2, 3], turn=2, new=8, attempt=1),
        ask(5, [1, 2, 3], turn=2, new=8),
    ]
    assert all(write(LocalEngine(model), one)[one.episode].token_ids != ids for one in changed)


def test_ids_do_not_depend_on_the_request_id(make_model: MakeModel) -> None:
    model = make_model()
    one = write(LocalEngine(model), ask(4, [1, 2, 3], request_id=1))[4]
    two = write(LocalEngine(model), ask(4, [1, 2, 3], request_id=77))[4]
    assert one.token_ids == two.token_ids and (one.id, two.id) == (1, 77)


def test_tokens_come_as_often_as_they_are_likely(make_model: MakeModel) -> None:
    model = make_model()
    count = 3000
    done = write(LocalEngine(model), *(ask(e, [1, 2, 3], new=1) for e in range(count)))
    seen = torch.bincount(torch.tensor([done[e].token_ids[0] for e in range(count)]), minlength=200)
    wanted = torch.softmax(logits_of(model, [1, 2, 3])[-1], dim=0)
    # Five standard deviations of a binomial share, and one count for rare tokens.
    limit = 5 * (wanted * (1 - wanted) / count).sqrt() + 1 / count
    assert bool(((seen[: len(wanted)] / count - wanted).abs() < limit).all())


def test_cancelled_requests_end_and_the_others_go_on(make_model: MakeModel) -> None:
    model = make_model()
    engine = LocalEngine(model)
    requests = [ask(e, [5 + e, 2, 3], new=7) for e in range(4)]
    for request in requests[:3]:
        engine.submit(request)
    assert engine.step() == engine.step() == []
    engine.submit(requests[3])  # still waiting when it is cancelled
    engine.cancel(3)
    engine.cancel(0)
    done = {completion.episode: completion for completion in engine.step()}
    assert {e: one.finish_reason for e, one in done.items()} == {3: "cancelled", 0: "cancelled"}
    assert done[3].token_ids == ()
    assert len(done[0].token_ids) == 2
    assert_defined(model, requests[0], done[0])
    while len(done) < 4:
        done |= {completion.episode: completion for completion in engine.step()}
    for request in requests[1:3]:
        assert_defined(model, request, done[request.episode])
    # The cache of a cancelled row is still right.
    again = [ask(0, [5, 2, 3, *done[0].token_ids, 9], turn=1), ask(3, [8, 2, 3], turn=1)]
    after = write(engine, *again)
    for request in again:
        assert_exact(model, request, after[request.episode])


def test_cancelling_what_has_ended_does_not_touch_the_next_request_of_that_id(make_model: MakeModel) -> None:
    engine = LocalEngine(make_model())
    write(engine, ask(0, [1, 2]))
    engine.cancel(0)
    engine.cancel(99)
    assert write(engine, ask(0, [1, 2, 3], turn=1))[0].finish_reason == "length"


def test_a_forked_episode_goes_on_from_the_same_cache(make_model: MakeModel) -> None:
    model = make_model()
    engine = LocalEngine(model)
    done = write(engine, ask(0, [1, 2, 3, 4]), ask(1, [7, 7]))
    engine.fork(0, 5)
    engine.fork(0, 1)  # takes the place of what it held
    prompt = [1, 2, 3, 4, *done[0].token_ids]
    requests = [ask(0, [*prompt, 8], turn=1), ask(5, [*prompt, 8], turn=1), ask(1, [*prompt, 9, 9], turn=1)]
    with forwarded(model) as shapes:
        after = write(engine, *requests)
    assert shapes[0] == (3, 3)
    for request in requests:
        assert_exact(model, request, after[request.episode])
    assert after[0].token_ids != after[5].token_ids


def test_released_rows_are_used_again_and_hold_nothing_of_the_past(make_model: MakeModel) -> None:
    model = make_model()
    engine = LocalEngine(model)
    write(engine, *(ask(e, [1, 2, 3, 4 + e]) for e in range(3)))
    rows = []
    for e in range(3, 40):
        engine.release(e - 3)
        request = ask(e, [1, 2, 3, e])
        with forwarded(model) as shapes:
            done = write(engine, request)
        rows.append(shapes[0])
        assert_exact(model, request, done[e])
    assert set(rows) == {(1, 4)}  # nothing was kept, so all four tokens were read


def test_releasing_a_stranger_is_no_error(make_model: MakeModel) -> None:
    LocalEngine(make_model()).release(12)


def test_a_rollout_is_the_same_after_another_one(make_model: MakeModel) -> None:
    model = make_model()
    engine = LocalEngine(model)
    requests = [ask(e, [1, 2, 3 + e], new=4 + e) for e in range(5)]
    first = write(engine, *requests)
    for e in range(5):
        engine.release(e)
    assert write(engine, *requests) == first


def test_more_than_the_model_can_hold_is_refused(make_model: MakeModel) -> None:
    model = make_model(positions=32)
    engine = LocalEngine(model)
    with pytest.raises(ConfigError, match="27 tokens and 6 new ones exceed the model's 32 positions"):
        engine.submit(ask(0, range(27)))
    request = ask(0, range(26))
    assert_exact(model, request, write(engine, request)[0])


def test_what_cannot_be_done_is_refused_and_harms_nothing(make_model: MakeModel) -> None:
    model = make_model()
    engine = LocalEngine(model)
    with pytest.raises(ConfigError, match="episode 0 is empty"):
        engine.submit(ask(0, []))
    request = ask(0, [1, 2, 3])
    engine.submit(request)
    for _ in range(2):
        with pytest.raises(ConfigError, match="is being written"):
            engine.submit(ask(0, [9]))
        with pytest.raises(ConfigError, match="is being written"):
            engine.release(0)
        with pytest.raises(ConfigError, match="Finish the rollout"):
            engine.load(None, 1)
        with pytest.raises(ConfigError, match="cannot be copied"):
            engine.fork(8, 9)
        assert engine.step() == []
    engine.fork(0, 1)
    with pytest.raises(ConfigError, match="cannot be copied"):
        engine.fork(1, 0)
    done: list[Completion] = []
    while not done:
        done = engine.step()
    assert_defined(model, request, done[0])


def test_an_idle_engine_has_nothing_to_say(make_model: MakeModel) -> None:
    assert LocalEngine(make_model()).step() == []


def test_score_equals_a_full_forward(make_model: MakeModel) -> None:
    model = make_model()
    ids = [1, 5, 2, 8, 8, 3]
    for temperature in (1.0, 0.6):
        log_probs = torch.log_softmax(logits_of(model, ids)[:-1] / temperature, dim=-1)
        wanted = log_probs.gather(1, torch.tensor(ids[1:]).unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(
            LocalEngine(model).score(ids, temperature=temperature), wanted, atol=1e-6, rtol=0
        )
    assert LocalEngine(model).score([4]).shape == (0,)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_both_kinds_of_attention_are_masked_right(attention: str) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=48, max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    config._attn_implementation = attention
    model = LlamaForCausalLM(config).eval()
    requests = [ask(0, [1, 2, 3]), ask(1, [4, 5, 6, 7, 8, 9])]
    done = write(LocalEngine(model), *requests)
    for request in requests:
        assert_exact(model, request, done[request.episode])


def test_attention_that_takes_no_mask_is_refused(make_model: MakeModel) -> None:
    model = make_model()
    model.config._attn_implementation = "flex_attention"
    with pytest.raises(ConfigError, match="attn_implementation='sdpa'"):
        LocalEngine(model)


def test_filler_beside_a_long_row_stays_within_learned_positions() -> None:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=64, initializer_range=0.2,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).eval()
    engine = LocalEngine(model)
    write(engine, ask(0, [1, 2, 3] * 15))
    requests = [ask(0, [1, 2, 3] * 15 + [4], turn=1), ask(1, range(40))]
    done = write(engine, *requests)
    for request in requests:
        assert_exact(model, request, done[request.episode])


@settings(max_examples=20, deadline=None, derandomize=True, phases=[Phase.generate])
@given(data=st.data())
def test_any_schedule_gives_each_request_what_it_gets_alone(data: st.DataObject) -> None:
    model = SCHEDULED.setdefault("model", _scheduled_model())
    engine = LocalEngine(model)
    tokens = st.integers(0, 49)
    prompts: dict[int, list[int]] = {}
    turns: dict[int, int] = {}
    running: dict[int, Request] = {}
    cancelled: set[int] = set()
    checked = 0

    def collect() -> None:
        nonlocal checked
        for completion in engine.step():
            request = running.pop(completion.episode)
            assert (completion.finish_reason == "cancelled") <= (completion.episode in cancelled)
            cancelled.discard(completion.episode)
            if completion.token_ids:
                assert_defined(model, request, completion)
            prompts[completion.episode] = [*request.prompt_ids, *completion.token_ids]
            checked += 1

    for _ in range(data.draw(st.integers(5, 14))):
        episode = data.draw(st.integers(0, 4))
        deed = data.draw(
            st.sampled_from(["ask", "ask", "ask", "rewrite", "step", "cancel", "release", "fork"])
        )
        idle = episode not in running
        if deed in ("ask", "rewrite") and idle:
            old = prompts.get(episode, [])
            old = old[: data.draw(st.integers(0, len(old)))] if deed == "rewrite" else old
            turns[episode] = turns.get(episode, -1) + 1
            request = ask(
                episode,
                [*old, *data.draw(st.lists(tokens, min_size=1, max_size=9))],
                turn=turns[episode],
                temperature=data.draw(st.sampled_from([0.0, 0.7, 1.0])),
                new=data.draw(st.integers(1, 7)),
                stops=(3, 4, 5),
            )
            running[episode] = request
            engine.submit(request)
        elif deed == "cancel" and not idle:
            cancelled.add(episode)
            engine.cancel(episode)
        elif deed == "release" and idle:
            engine.release(episode)
            prompts.pop(episode, None)
        elif deed == "fork" and idle:
            source = data.draw(st.integers(0, 4))
            if prompts.get(source) and source not in running and source != episode:
                engine.fork(source, episode)
                prompts[episode] = prompts[source]
        collect()
    for _ in range(300):
        collect()
    assert not running
    assert engine.step() == [] and checked <= 14


SCHEDULED: dict[str, LlamaForCausalLM] = {}


def _scheduled_model() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=256, initializer_range=0.3,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = LlamaForCausalLM(config)
    model.eval()
    return model
