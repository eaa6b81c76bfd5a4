"""Optimizers by name: AdamW, and Muon in float32."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from turngym.training.settings import OptimSettings

NEWTON_SCHULZ_STEPS = 4
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


class Muon(torch.optim.Optimizer):
    """Momentum whose matrices are orthogonalised by Newton-Schulz iterations in float32.

    torch.optim.Muon iterates in bfloat16, which CPUs without bfloat16 units emulate very slowly. Matrices of
    one shape are stacked, so that an iteration is one batched product.

    Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
    """

    def __init__(
        self, params: Iterable[nn.Parameter], *, lr: float, momentum: float, weight_decay: float
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step; a closure is not used."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = {}
            for param in group["params"]:
                if param.grad is not None:
                    by_shape.setdefault(param.shape, []).append(param)
            for params in by_shape.values():
                self._step_stacked(params, group)

    def _step_stacked(self, params: list[nn.Parameter], group: dict[str, Any]) -> None:
        momentum, directions = group["momentum"], []
        for param in params:
            gradient = param.grad
            if gradient is None:
                raise AssertionError("only parameters with a gradient are stacked")
            state = self.state[param]
            if "momentum" not in state:
                state["momentum"] = torch.zeros_like(param)
            buffer = state["momentum"].mul_(momentum).add_(gradient)
            directions.append(gradient.add(buffer, alpha=momentum))
        rows, columns = params[0].shape
        scale = max(1.0, rows / columns) ** 0.5
        for param, update in zip(params, orthogonalise(torch.stack(directions)), strict=True):
            param.mul_(1 - group["lr"] * group["weight_decay"])
            param.add_(update, alpha=-group["lr"] * scale)


def orthogonalise(matrices: Tensor) -> Tensor:
    """(K, m, n) matrices with singular values brought near 1, by a quintic Newton-Schulz iteration."""
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x: Tensor = matrices.transpose(1, 2) if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = x @ x.transpose(1, 2)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.transpose(1, 2) if tall else x


class OptimizerSet:
    """The optimizers of one model, with one schedule and one clip of the gradient's norm."""

    def __init__(self, model: nn.Module, settings: OptimSettings, total_steps: int) -> None:
        self.settings = settings
        self.total_steps = total_steps
        self.params = [param for param in model.parameters() if param.requires_grad]
        matrices = _hidden_matrices(model) if settings.name == "muon" else []
        inside = {id(param) for param in matrices}
        others = [param for param in self.params if id(param) not in inside]
        self._parts: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(
                others, lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay, foreach=True
            )
        ]
        if matrices:
            self._parts.append(
                Muon(matrices, lr=settings.muon_lr, momentum=0.95, weight_decay=settings.weight_decay)
            )
        self._heights = [settings.lr, settings.muon_lr]

    def step(self, done: int) -> float:
        """Steps after `done` earlier ones, then clears the gradients; returns their norm before clipping.

        With a norm that is not finite no step is taken, so the weights stay those of before.
        """
        norm = float(nn.utils.clip_grad_norm_(self.params, self.settings.max_grad_norm))
        if not math.isfinite(norm):
            self.zero_grad()
            return norm
        share = self.lr_share(done)
        for part, height in zip(self._parts, self._heights, strict=False):
            for group in part.param_groups:
                group["lr"] = height * share
            part.step()
        self.zero_grad()
        return norm

    def zero_grad(self) -> None:
        for part in self._parts:
            part.zero_grad(set_to_none=True)

    def lr_share(self, done: int) -> float:
        """Learning rate as a share of its height: up in the warm-up, level, then down in a line."""
        s = self.settings
        if done < s.warmup:
            return (done + 1) / (s.warmup + 1)
        progress = done / max(self.total_steps, 1)
        if progress <= s.hold or s.hold >= 1:
            return 1.0
        return max(s.final, 1 - (1 - s.final) * (progress - s.hold) / (1 - s.hold))

    def state_dict(self) -> list[dict[str, Any]]:
        return [part.state_dict() for part in self._parts]

    def load_state_dict(self, states: list[dict[str, Any]]) -> None:
        for part, state in zip(self._parts, states, strict=True):
            part.load_state_dict(state)


def _hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """Two-dimensional weights of inner layers: no embedding and no output head."""
    outer = {
        id(param)
        for module in model.modules()
        if isinstance(module, nn.Embedding) or (isinstance(module, nn.Linear) and _is_head(model, module))
        for param in module.parameters()
    }
    return [p for p in model.parameters() if p.requires_grad and p.ndim == 2 and id(p) not in outer]


def _is_head(model: nn.Module, module: nn.Module) -> bool:
    head = getattr(model, "get_output_embeddings", lambda: None)()
    return module is head or module is getattr(model, "head", None)
