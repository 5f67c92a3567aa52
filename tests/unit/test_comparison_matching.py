"""How rows of two runs find one another: by name, by bare name, by place; and none is lost or used twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfprof_widgets.comparison.matching import Rule, Side, bare_name, match, natural_order

RULES = [Rule("name", lambda r: r["name"]), Rule("renamed", lambda r: bare_name(r["name"]))]


def side(*names: str, weights: list[float] | None = None) -> Side:
    n = len(names)
    return Side([{"name": name} for name in names], np.arange(n, dtype=float), np.array(weights or [1.0] * n))


def pairs(before: Side, after: Side, rules: list[Rule] = RULES) -> dict[tuple[str, str], str]:
    def name(one: Side, i: int) -> str:
        return one.rows[i]["name"] if i >= 0 else ""

    return {(name(before, m.before), name(after, m.after)): m.says for m in match(before, after, rules)}


def test_layers_with_other_numbers_match_in_their_order():
    found = pairs(side("dense_1/MatMul", "dense_2/MatMul", "gone"), side("dense_3/MatMul", "dense_4/MatMul", "new"))
    assert found == {
        ("dense_1/MatMul", "dense_3/MatMul"): "renamed",
        ("dense_2/MatMul", "dense_4/MatMul"): "renamed",
        ("gone", ""): "vanished",
        ("", "new"): "appeared",
    }


def test_the_same_name_wins_over_the_same_place():
    found = pairs(side("dense/MatMul", "dense_1/MatMul"), side("dense_1/MatMul", "dense_2/MatMul"))
    assert found == {("dense_1/MatMul", "dense_1/MatMul"): "name", ("dense/MatMul", "dense_2/MatMul"): "renamed"}


def test_a_layer_that_was_taken_out_is_the_one_that_vanishes():
    before = side("dense_1", "dense_2", "dense_3", weights=[50, 7, 400])
    found = pairs(before, side("dense_4", "dense_5", weights=[55, 380]))
    assert found == {("dense_1", "dense_4"): "renamed", ("dense_3", "dense_5"): "renamed", ("dense_2", ""): "vanished"}


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("StatefulPartitionedCall/sequential_1/dense_1_2/BiasAdd", "sequential/dense/biasadd"),
        ("StatefulPartitionedCall_1/PartitionedCall/Adam/Sub_11", "adam/sub"),
        ("sequential/conv2d/Conv2D", "sequential/conv2d/conv2d"),
        ("MatMul", "matmul"),
    ],
)
def test_bare_names_have_no_numbers_and_no_calls(name, bare):
    assert bare_name(name) == bare


def test_numbers_in_names_sort_as_numbers():
    assert sorted(["dense_10", "dense_2", "dense"], key=natural_order) == ["dense", "dense_2", "dense_10"]


@settings(max_examples=60, deadline=None)
@given(*[st.lists(st.sampled_from(["a", "a_1", "a_2", "a_3", "b", "b_7", "c/a", "c/a_1"]), max_size=9)] * 2)
def test_every_row_is_in_exactly_one_match(ours, theirs):
    random = np.random.default_rng(len(ours) + 10 * len(theirs))
    before = side(*ours, weights=list(random.uniform(0, 3, len(ours))))
    after = side(*theirs, weights=list(random.uniform(0, 3, len(theirs))))
    matches = match(before, after, RULES)
    assert sorted(m.before for m in matches if m.before >= 0) == list(range(len(ours)))
    assert sorted(m.after for m in matches if m.after >= 0) == list(range(len(theirs)))
    for m in matches:
        assert (m.before < 0) == (m.says == "appeared")
        assert (m.after < 0) == (m.says == "vanished")
