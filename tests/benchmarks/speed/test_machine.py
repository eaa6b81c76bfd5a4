"""Whether a machine is at rest."""

import pytest

from turngym.benchmarks.speed.machine import Machine, this_machine


@pytest.mark.parametrize(("cores", "load"), [(1, 0.5), (2, 0.4), (16, 3.9), (2, 0.0)])
def test_a_machine_at_rest_is_no_matter(cores: int, load: float) -> None:
    assert Machine(cores=cores, processor="", system="", load=load).busy_warning == ""


@pytest.mark.parametrize(("cores", "load"), [(1, 0.6), (2, 1.0), (16, 4.1)])
def test_a_busy_machine_is_told(cores: int, load: float) -> None:
    told = Machine(cores=cores, processor="", system="", load=load).busy_warning
    assert f"load {load:.1f}" in told and "run it again" in told


def test_this_machine_is_told_without_its_name() -> None:
    machine = this_machine()
    assert machine.cores >= 1
    assert set(machine.model_dump()) == {"cores", "processor", "system", "load"}
