"""Values of a JaxState that hold objects with a state of their own."""

import jax.numpy as jnp
import numpy
import pytest

import horovod.jax as hvd


class Schedule:
    def __init__(self):
        self.steps = 0

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


class Holder:
    def __init__(self, inner):
        self.inner = inner


def test_objects_within_values():
    schedule, random = Schedule(), numpy.random.default_rng(hvd.rank())
    schedule.steps = hvd.rank()
    sampler = hvd.elastic.ElasticSampler(range(10), shuffle=False)
    state = hvd.elastic.JaxState(
        w=jnp.zeros(2), tools=[schedule, {"random": random}], data={"sampler": sampler}, losses=[]
    )
    state.sync()
    assert schedule.steps == 0 and len({float(x) for x in hvd.allgather_object(random.random())}) == 1
    schedule.steps = 5
    state.losses.append(jnp.ones(1))
    state.commit()
    drawn = random.random()
    schedule.steps = 9
    state.losses.append(jnp.ones(1))
    state.restore()
    assert state.tools[0] is schedule and schedule.steps == 5 and random.random() == drawn
    assert len(state.losses) == 1 and float(state.losses[0][0]) == 1.0
    assert state.data["sampler"] is sampler


def test_object_among_arrays_is_refused():
    error = r"its leaf \['tool'\] is a Schedule, of which a copy would be restored there"
    with pytest.raises(ValueError, match=error):
        hvd.elastic.JaxState(tree={"w": jnp.zeros(2), "tool": Schedule()})


def test_arrays_in_an_unsupported_place():
    with pytest.raises(ValueError, match=r"^JaxState\.holder\.inner\['w'\] is an? \w+, of which a copy"):
        hvd.elastic.JaxState(holder=Holder({"w": jnp.zeros(2)}))
