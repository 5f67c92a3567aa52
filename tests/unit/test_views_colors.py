"""Colours: told apart with every common kind of sight, seen on light and dark pages, and the same in every view."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from tfprof_widgets.analysis.steps import CATEGORIES
from tfprof_widgets.views.colors import (
    CATEGORY_COLORS,
    HATCHED_CATEGORIES,
    NEUTRAL_COLOR,
    OP_PALETTE,
    OpColors,
    luminance,
    text_color_on,
)

# Full deficiencies, on linear RGB (Machado, Oliveira, Fernandes 2009).
SIGHTS = {
    "usual": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}


def oklab(color: str, sight: str) -> np.ndarray:
    rgb = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(SIGHTS[sight] @ linear, 0, 1)
    lms = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return lab @ np.cbrt(lms @ seen)


def least_distance(colors, sight: str) -> float:
    """Least distance of two colours; 2 (in hundredths of OKLab's lightness) is just visible side by side."""
    return min(100 * np.linalg.norm(oklab(a, sight) - oklab(b, sight)) for a, b in combinations(colors, 2))


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("sight", SIGHTS)
def test_categories_can_be_told_apart(sight):
    assert least_distance(CATEGORY_COLORS.values(), sight) > 10


@pytest.mark.parametrize("sight", SIGHTS)
def test_op_types_can_be_told_apart(sight):
    assert least_distance(OP_PALETTE, sight) > 5


@pytest.mark.parametrize("color", [*CATEGORY_COLORS.values(), *OP_PALETTE])
def test_colors_stand_out_from_light_and_dark_pages(color):
    assert contrast(color, "#ffffff") > 1.5
    assert contrast(color, "#16191d") > 1.8


@pytest.mark.parametrize("color", CATEGORY_COLORS.values())
def test_text_on_a_color_can_be_read(color):
    assert contrast(color, text_color_on(color)) >= 4.5


def test_every_category_has_a_color_and_input_is_not_told_by_color_alone():
    assert tuple(CATEGORY_COLORS) == CATEGORIES
    assert "input" in HATCHED_CATEGORIES


def test_the_most_important_types_have_colors_of_their_own():
    types = [f"Op{i}" for i in range(40)]
    colors = OpColors(types)
    assert {colors(t) for t in types[: len(OP_PALETTE)]} == set(OP_PALETTE)
    assert all(colors(t) in OP_PALETTE for t in types)


def test_a_type_keeps_its_color_from_one_profile_to_another():
    assert (
        OpColors(["MatMul", "Relu"])("MatMul")
        == OpColors(["Conv2D", "MatMul", "Sum"])("MatMul")
        == OpColors()("MatMul")
    )
    assert OpColors(["MyOp"])("MyOp") == OpColors()("MyOp")


def test_what_is_no_op_is_grey():
    assert {OpColors(["IDLE", "", "Unknown"])(t) for t in ("IDLE", "", "Unknown")} == {NEUTRAL_COLOR}


def test_a_type_that_is_not_unicode_has_a_color():
    assert OpColors(["\udcff"])("\udcff") in OP_PALETTE


def test_types_of_a_profile_rank_by_their_time():
    # Sixteen types take every colour; the seventeenth, with the least time, has to share.
    ops = pd.DataFrame(
        {"host_or_device": "Host", "type": [f"T{i}" for i in range(17)], "self_time_us": np.arange(17.0)}
    )
    colors = OpColors.of(ops)
    assert len({colors(f"T{i}") for i in range(1, 17)}) == len(OP_PALETTE)


def test_types_that_take_most_of_one_side_are_told_apart_however_little_that_side_did():
    names = [f"T{i}" for i in range(16)]
    device = pd.DataFrame({"host_or_device": "Device", "type": names, "self_time_us": 100.0 - np.arange(16.0)})
    host = pd.DataFrame({"host_or_device": "Host", "type": ["H0", "H1"], "self_time_us": [2.0, 1.0]})
    colors = OpColors.of(pd.concat([device, host]))
    assert len({colors(name) for name in [*names[:14], "H0", "H1"]}) == len(OP_PALETTE)
