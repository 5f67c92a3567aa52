"""What travels to the browser: exact, small, the same each time, and never code."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tfprof_widgets.display.payload import FORMAT, Payload


def read(packed: bytes) -> pa.Table:
    return pa.ipc.open_stream(gzip.decompress(packed)).read_all()


def packed(**columns) -> pa.Table:
    payload = Payload("p")
    payload.add_table("t", pd.DataFrame(columns))
    return read(payload.tables["t"])


def test_values_and_order_survive():
    frame = pd.DataFrame(
        {
            "name": ["a", None, "$$x$$ </script>"],
            "time_us": [0.1, np.nan, 3e15],
            "count": [1, 2, 300],
            "flag": [True, False, True],
            "type": pd.Categorical(["MatMul", "Relu", "MatMul"]),
        },
        index=[7, 8, 9],
    )
    payload = Payload("p")
    assert payload.add_table("ops", frame) == "ops"
    table = read(payload.tables["ops"])
    assert table.column_names == list(frame.columns)
    assert table["name"].to_pylist() == ["a", None, "$$x$$ </script>"]
    assert table["time_us"].to_pylist() == [0.1, None, 3e15]
    assert table["count"].to_pylist() == [1, 2, 300]
    assert table["flag"].to_pylist() == [True, False, True]
    assert table["type"].to_pylist() == ["MatMul", "Relu", "MatMul"]
    assert table.schema.metadata is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 255], pa.uint8()),
        ([0, 256], pa.uint16()),
        ([-1, 127], pa.int8()),
        ([-1, 128], pa.int16()),
        ([0, 2**32 - 1], pa.uint32()),
        ([0, 2**32], pa.int64()),
        ([0, 2**53 - 1], pa.int64()),
    ],
)
def test_integers_take_the_smallest_type(values, kind):
    table = packed(x=values)
    assert table.schema.field("x").type == kind
    assert table["x"].to_pylist() == values


def test_texts_that_repeat_travel_once():
    few, many = ["MatMul", None, "Relu", "MatMul"] * 50, [f"op_{i}" for i in range(200)]
    table = packed(type=few, name=many, empty=[None] * 200)
    assert pa.types.is_dictionary(table.schema.field("type").type)
    assert table.schema.field("name").type == pa.string()
    assert table["type"].to_pylist() == few
    assert table["name"].to_pylist() == many
    assert table["empty"].to_pylist() == [None] * 200


def test_shares_have_seven_digits_and_times_all():
    table = packed(self_time_pct=[100 / 3, 1e-9], self_time_us=[100 / 3, 1e-9])
    assert table.schema.field("self_time_pct").type == pa.float32()
    np.testing.assert_allclose(table["self_time_pct"], [100 / 3, 1e-9], rtol=1e-7)
    assert table["self_time_us"].to_pylist() == [100 / 3, 1e-9]


def test_integers_too_large_for_javascript_are_exact_as_text():
    assert packed(x=np.array([2**53 + 1, 2**64 - 1], dtype=np.uint64))["x"].to_pylist() == [
        str(2**53 + 1),
        str(2**64 - 1),
    ]


def test_empty_and_all_missing_columns():
    assert packed(x=np.array([], dtype=np.int64), name=np.array([], dtype=object)).num_rows == 0
    assert packed(name=[None, None])["name"].to_pylist() == [None, None]


def test_arrow_tables_are_taken_as_they_are():
    payload = Payload("p")
    payload.add_table("t", pa.table({"start": pa.array([1, 2], pa.uint32()), "d": pa.array([0.5, 1.5], pa.float32())}))
    assert read(payload.tables["t"]).schema.types == [pa.uint32(), pa.float32()]


def test_the_same_data_gives_the_same_bytes():
    frame = pd.DataFrame({"x": range(1000), "name": [f"op_{i}" for i in range(1000)]})
    packs = []
    for _ in range(2):
        payload = Payload("p", tabs=[{"id": "a", "title": "A", "items": []}])
        payload.add_table("t", frame)
        packs.append((payload.tables["t"], payload.spec_gz()))
    assert packs[0] == packs[1]


def test_small_tables_that_are_alike_travel_together():
    payload = Payload(id="x")
    frames = {
        f"t{i}": pd.DataFrame({"name": [f"op_{j}" for j in range(300)], "n": np.arange(300) + i}) for i in range(5)
    }
    for name, frame in frames.items():
        payload.add_table(name, frame)
    payload.add_table("big", pd.DataFrame({"x": np.arange(20_000, dtype=float)}))
    apart = sum(map(len, payload.tables.values()))
    big = payload.tables["big"]
    payload.bundle("all", [*frames, "big"])
    assert set(payload.tables) == {"all", "big"}
    assert payload.tables["big"] == big
    assert sum(map(len, payload.tables.values())) - len(big) < 0.5 * (apart - len(big))
    (bundle,) = payload.spec["bundles"]
    data, start = gzip.decompress(payload.tables["all"]), 0
    for name, size in zip(bundle["tables"], bundle["sizes"], strict=True):
        pd.testing.assert_frame_equal(
            pa.ipc.open_stream(data[start : start + size]).read_all().to_pandas(), frames[name], check_dtype=False
        )
        start += size
    assert start == len(data)
    with pytest.raises(ValueError, match="already has a table"):
        payload.bundle("big", ["all"])


def test_a_name_is_used_once():
    payload = Payload("p")
    payload.add_table("t", pd.DataFrame({"x": [1]}))
    with pytest.raises(ValueError, match="already has a table named 't'"):
        payload.add_table("t", pd.DataFrame({"x": [2]}))


@pytest.mark.parametrize("bad", ["", 'a"b', "a b", "<x>", "é"])
def test_ids_are_plain(bad):
    with pytest.raises(ValueError, match="id has letters"):
        Payload(bad)


def test_the_spec_is_json_whatever_numbers_it_holds():
    facts = [
        {"label": "n", "value": np.int64(3)},
        {"label": "nan", "value": float("nan")},
        {"label": "inf", "value": np.float64("inf")},
        {"label": "flag", "value": np.bool_(True)},
    ]
    payload = Payload("p", version="1", head={"title": "</script>", "facts": facts}, notes=["a"])
    spec = json.loads(gzip.decompress(payload.spec_gz()))
    assert [fact["value"] for fact in spec["head"]["facts"]] == [3, None, None, True]
    assert spec == payload.spec
    assert spec["format"] == FORMAT
    import bokeh

    assert spec["bokeh_version"] == bokeh.__version__


def test_characters_that_hide_or_turn_text_are_shown_by_signs():
    hidden = "half \ud83d of µs \u2028 \u202etxt.exe \x1b[31m \x00\tand\n"
    shown = "half \ufffd of µs \\u2028 \\u202etxt.exe \\x1b[31m \\x00\tand\n"
    payload = Payload("p", notes=[hidden], head={"title": "", "facts": [{"label": hidden, "value": 1}]})
    spec = json.loads(gzip.decompress(payload.spec_gz()))
    assert spec["notes"] == [shown]
    assert spec["head"]["facts"][0]["label"] == shown
    text = hidden.replace("\ud83d", "\ufffd")  # Arrow has no half of a pair
    for column in ([text, "a"], [text] * 9, pd.Categorical([text, "a", None])):
        assert packed(name=column)["name"].to_pylist()[0] == shown
    assert packed(name=["a", None, "b"])["name"].to_pylist() == ["a", None, "b"]
