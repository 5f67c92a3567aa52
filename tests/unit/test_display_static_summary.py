"""The summary where no script runs."""

from __future__ import annotations

import re

from tfprof_widgets.display.static_summary import to_html, to_text
from tfprof_widgets.views.blocks import Facts, Notes, SmallTable

HOSTILE = "<img src=x onerror=alert(1)>"
BLOCKS = [
    Facts([("Steps", 64), ("Captured", 1.844), ("Device", "CPU"), ("Eager", False), ("Peak", None)]),
    SmallTable(
        ["Operation", "Time (ms)", "Share"],
        [["MatMul\nx", 1234.5678, "41 %"], [HOSTILE, float("nan"), "1 %"]],
        title="Top ops",
        note="2 of 57 operations",
        digits=1,
    ),
    Notes(["The first step was left out.", HOSTILE], title="Notes"),
]


def test_html_escapes_every_text():
    html = to_html(
        HOSTILE, [*BLOCKS, Facts([(HOSTILE, HOSTILE)], title=HOSTILE), SmallTable([HOSTILE], [], note=HOSTILE)]
    )
    assert "<img" not in html
    assert html.count("&lt;img") == 8


def test_below_0_stands_a_minus_and_0_has_none():
    text = to_text("", [SmallTable(["Difference"], [[-1234.56], [-0.001], [0.0]], digits=1)])
    assert text.split() == ["Difference", "−1,234.6", "0.0", "0.0"]


def test_html_keeps_to_what_sanitizers_leave():
    html = to_html("Summary", BLOCKS)
    assert set(re.findall(r"<(\w+)", html)) <= {
        "bdi",
        "p",
        "strong",
        "small",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
    }
    assert set(re.findall(r' (\w+)="', html)) == {"align", "style"}


def test_hidden_characters_are_shown_and_long_texts_say_how_long_they_are():
    blocks = [
        Facts([("\u202elabel", "\x1b[31m")]),
        Notes(["\u2066note"]),
        SmallTable(["\x07"], [["\u202eop"]], note="x" * 5000),
    ]
    for text in (to_html("\u202etitle", blocks), to_text("\u202etitle", blocks)):
        for sign in (
            r"\u202elabel",
            r"\x1b[31m",
            r"\u2066note",
            r"\x07",
            r"\u202eop",
            r"\u202etitle",
            "… (5,000 characters) …",
        ):
            assert sign in text
        assert not any(char in text for char in "\u202e\x1b\u2066\x07")
        assert len(text) < 3000


def test_nothing_is_typeset_as_mathematics():
    html = to_html("$a$", [Notes(["costs $5 or $6"]), SmallTable(["\\(x\\)"], [["$$a_long_name_of_an_op$$"]])])
    # Every mark is alone in its element.
    assert re.findall(r"[^<>]*\$[^<>]*", html) == ["$"] * 8
    assert re.findall(r"[^<>]*\\[^<>]*", html) == ["\\", "(x\\)"]


def test_html_numbers_stand_right_and_text_left():
    html = to_html("", BLOCKS)
    left = '<td align="left" style="text-align:left">'
    assert f'{left}MatMul&nbsp;x</td><td align="right">1,234.6</td><td align="right">41&nbsp;%</td>' in html
    assert '<td align="right">–</td>' in html


def test_text_has_the_same_in_aligned_columns():
    assert to_text("Summary", BLOCKS).splitlines() == [
        "Summary",
        "",
        "Steps     64",
        "Captured  1.84",
        "Device    CPU",
        "Eager     no",
        "Peak      –",
        "",
        "Top ops",
        "Operation                     Time (ms)  Share",
        "MatMul x                        1,234.6   41 %",
        f"{HOSTILE}          –    1 %",
        "2 of 57 operations",
        "",
        "Notes",
        "- The first step was left out.",
        f"- {HOSTILE}",
    ]


def test_an_empty_table_keeps_its_headers():
    assert to_text("", [SmallTable(["A", "B"], [])]) == "A  B"
    assert "<th" in to_html("", [SmallTable(["A"], [])])


def test_long_names_may_be_broken_between_their_parts_only():
    html = to_html("", [SmallTable(["Operation"], [["model/dense_1 & co/Iterator::Root/Conv2DBackpropFilter"]])])
    assert "model/<wbr>dense_1 &amp; co/<wbr>Iterator::<wbr>Root/<wbr>Conv2D<wbr>Backprop<wbr>Filter" in html


def test_a_single_note_is_a_sentence():
    assert to_text("", [Notes(["One."])]) == "One."
    assert to_html("", [Notes(["One."])]) == "<p>One.</p>"
