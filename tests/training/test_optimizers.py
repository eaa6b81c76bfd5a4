"""Muon, the schedule, and the set of optimizers of a model."""

import copy

import pytest
import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from turngym.training.forward import Critic
from turngym.training.optimizers import Muon, OptimizerSet, orthogonalise
from turngym.training.settings import OptimSettings


def small(seed: int = 0) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=32,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)


def pull(model: nn.Module, step: int) -> None:
    """Gives each parameter a gradient that depends on the step alone."""
    generator = torch.Generator().manual_seed(step)
    for param in model.parameters():
        param.grad = torch.randn(param.shape, generator=generator)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([param.detach().flatten() for param in model.parameters()])


@pytest.mark.parametrize("shape", [(3, 12, 12), (2, 8, 20), (2, 20, 8), (1, 1, 6)])
def test_orthogonalised_matrices_have_singular_values_near_1(shape: tuple[int, int, int]) -> None:
    generator = torch.Generator().manual_seed(1)
    rows, columns = shape[1:]
    left = torch.linalg.qr(torch.randn(shape[0], rows, rows, generator=generator)).Q
    right = torch.linalg.qr(torch.randn(shape[0], columns, columns, generator=generator)).Q
    rank = min(rows, columns)
    values = torch.linspace(0.3, 5.0, rank)  # well away from 0: few steps do not lift what is nearly 0
    matrices = 100 * left[:, :, :rank] * values @ right[:, :, :rank].transpose(1, 2)
    got = orthogonalise(matrices)
    assert got.shape == matrices.shape
    singular = torch.linalg.svdvals(got)
    assert bool((singular > 0.6).all()) and bool((singular < 1.3).all())
    # The singular vectors stay: U V^T is the nearest orthogonal matrix.
    u, _, vh = torch.linalg.svd(matrices, full_matrices=False)
    assert bool((torch.linalg.svdvals(got - u @ vh) < 0.4).all())


def test_stacking_changes_no_matrix() -> None:
    matrices = torch.randn(4, 6, 9, generator=torch.Generator().manual_seed(2))
    alone = torch.cat([orthogonalise(one.unsqueeze(0)) for one in matrices])
    torch.testing.assert_close(orthogonalise(matrices), alone, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(orthogonalise(matrices * 1e3), alone, atol=1e-5, rtol=1e-5)


def test_a_muon_step_is_momentum_orthogonalised_and_scaled_by_shape() -> None:
    generator = torch.Generator().manual_seed(3)
    param = nn.Parameter(torch.randn(8, 2, generator=generator))
    start, first, second = param.detach().clone(), *torch.randn(2, 8, 2, generator=generator)
    optimizer = Muon([param], lr=0.1, momentum=0.5, weight_decay=0.2)
    expected, buffer = start.clone(), torch.zeros(8, 2)
    for gradient in (first, second):
        param.grad = gradient.clone()
        optimizer.step()
        buffer = 0.5 * buffer + gradient
        direction = orthogonalise((gradient + 0.5 * buffer).unsqueeze(0))[0]
        expected = expected * (1 - 0.1 * 0.2) - 0.1 * 2.0 * direction  # sqrt(8 / 2) = 2
    torch.testing.assert_close(param.detach(), expected)


def test_embedding_head_and_vectors_go_to_adamw_and_inner_matrices_to_muon() -> None:
    model = small()
    optimizer = OptimizerSet(model, OptimSettings(name="muon", lr=0.0625, muon_lr=0.5, max_grad_norm=1e9), 10)
    before = {name: param.detach().clone() for name, param in model.named_parameters()}
    pull(model, 0)
    optimizer.step(0)
    for name, param in model.named_parameters():
        moved = (param.detach() - before[name]).abs()
        if param.ndim == 2 and "embed" not in name and "lm_head" not in name:
            assert moved.max() > 0.0626, name
        else:
            # Adam's first step moves each number by its learning rate.
            torch.testing.assert_close(moved, torch.full_like(moved, 0.0625), atol=1e-4, rtol=1e-3)


def test_the_critics_head_goes_to_adamw() -> None:
    critic = Critic(small().model)
    optimizer = OptimizerSet(
        critic, OptimSettings(name="muon", lr=0.0625, muon_lr=0.5, max_grad_norm=1e9), 10
    )
    pull(critic, 0)
    optimizer.step(0)
    assert critic.head.weight.abs().max().item() == pytest.approx(0.0625, rel=1e-3)


def test_adamw_alone_takes_everything() -> None:
    model = small()
    before = weights(model)
    optimizer = OptimizerSet(model, OptimSettings(lr=0.01), 10)
    pull(model, 0)
    optimizer.step(0)
    assert len(optimizer.state_dict()) == 1
    torch.testing.assert_close((weights(model) - before).abs().mean().item(), 0.01, atol=1e-4, rtol=1e-2)


def shares(total: int, **changes: float) -> list[float]:
    optimizer = OptimizerSet(nn.Linear(1, 1), OptimSettings.model_validate({"lr": 1.0, **changes}), total)
    return [optimizer.lr_share(done) for done in range(total)]


def test_the_schedule_rises_holds_and_falls_in_a_line() -> None:
    assert shares(4) == [1.0] * 4
    assert shares(6, warmup=3) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert shares(10, hold=0.5) == pytest.approx([1.0] * 6 + [0.8, 0.6, 0.4, 0.2])
    assert shares(10, hold=0.5, final=0.5) == pytest.approx([1.0] * 6 + [0.9, 0.8, 0.7, 0.6])
    assert shares(4, hold=0.0) == pytest.approx([1.0, 0.75, 0.5, 0.25])
    # A stage that goes on beyond its steps stays at the end's level.
    late = OptimizerSet(nn.Linear(1, 1), OptimSettings(hold=0.5, final=0.1), 4)
    assert [late.lr_share(4), late.lr_share(9)] == pytest.approx([0.1, 0.1])


def test_the_share_scales_every_learning_rate() -> None:
    settings = OptimSettings(name="muon", lr=0.02, muon_lr=0.02, warmup=1, max_grad_norm=1e9)
    full, half = small(), small()
    start = weights(full)
    for model, done in ((full, 1), (half, 0)):
        pull(model, 0)
        OptimizerSet(model, settings, 10).step(done)
    torch.testing.assert_close((weights(half) - start) * 2, weights(full) - start, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_restored_optimizers_go_on_as_if_nothing_had_happened(name: str) -> None:
    settings = OptimSettings.model_validate({"name": name, "warmup": 2, "weight_decay": 0.1})
    whole, part = small(), small()
    one, two = OptimizerSet(whole, settings, 8), OptimizerSet(part, settings, 8)
    for done in range(6):
        if done == 3:
            model = small(seed=9)
            model.load_state_dict(part.state_dict())
            state = copy.deepcopy(two.state_dict())
            part, two = model, OptimizerSet(model, settings, 8)
            two.load_state_dict(state)
        for model, optimizer in ((whole, one), (part, two)):
            pull(model, done)
            optimizer.step(done)
    assert torch.equal(weights(whole), weights(part))


def test_gradients_are_cut_to_the_norm_over_both_optimizers_and_cleared() -> None:
    model = small()
    optimizer = OptimizerSet(model, OptimSettings(name="muon", max_grad_norm=0.5), 10)
    pull(model, 0)
    before = torch.cat(
        [param.grad.flatten() for param in model.parameters() if param.grad is not None]
    ).norm()
    assert optimizer.step(0) == pytest.approx(float(before), rel=1e-5)
    assert all(param.grad is None for param in model.parameters())


def test_a_norm_that_is_no_number_leaves_the_weights() -> None:
    model = small()
    before = weights(model)
    optimizer = OptimizerSet(model, OptimSettings(name="muon"), 10)
    pull(model, 0)
    first = next(model.parameters())
    assert first.grad is not None
    first.grad[0, 0] = torch.nan
    assert optimizer.step(0) != optimizer.step(0)  # NaN, and again NaN-free: no gradient is left
    assert torch.equal(weights(model), before)
