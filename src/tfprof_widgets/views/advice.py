"""The answer first: where the time goes and what to change, at the head of the report and as a list of recommendations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from . import spec
from .spec import ms, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.advice import Finding
    from ..analysis.overview import Overview

# Calls (with parentheses nested twice) and settings: what to type, within a sentence.
_CALL = r"[.@]?[A-Za-z_][\w.]*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_CODE = re.compile(rf"{_CALL}|[A-Za-z_]\w*=[\w.]*\w|@tf\.function\b")
_LOOKED_AT = (
    "Looked at: waiting for input, kernel launches and gaps between kernels, idle time of the devices within steps, tracing and "
    "compiling, ops run eagerly, Tensor Cores, copies between host and device, communication, stragglers, time outside TensorFlow, "
    "memory near its limit."
)
_NOTHING = "Nothing stands out."
_NO_STEPS = "Nothing stands out in the ops; without steps, no more can be told."
_MARK_STEPS = "Mark each step of your own loop: with tfprof_widgets.step(i): …"
_UNSEEN = (
    "No recommendation: what the device did was not recorded, and what the host did says little without it. Of the rest, the input and "
    "ops run eagerly were looked at."
)
_NOTHING_RECORDED = (
    "Let TensorFlow work while the profiler runs (in the profiled cell, or longer), and leave the host level at 2 or "
    "more (--host-level 2)."
)
# What to do where a GPU was not recorded.
UNSEEN_CHANGE = (
    "Let the profiler load CUPTI, of the CUDA toolkit (its folder extras/CUPTI/lib64 in LD_LIBRARY_PATH; on Windows in PATH), and "
    "let the driver allow profiling (NVreg_RestrictProfilingToAdminUsers=0); with --device-level 0 nothing is recorded."
)
# A change that saves less than this of a step is no answer to what is slow, in percent.
_SMALL_PCT = 3.0


def answer(findings: Sequence[Finding], summary: Overview) -> dict[str, Any]:
    """Return the head's ``answer``.

    Parameters
    ----------
    findings : sequence of Finding
        ``report.advice``, the most promising first.
    summary : Overview
        Says where the time of a step goes.
    """
    if summary.unseen_devices:
        return _unseen(summary, findings)
    if not findings and summary.step_time.empty and summary.top_ops.empty:
        return {"text": summary.statement, "detail": "", "action": [{"text": _NOTHING_RECORDED}], "links": []}
    if not findings and summary.step_time.empty:
        return {"text": _NO_STEPS, "detail": summary.statement, "action": prose(_MARK_STEPS), "links": []}
    if not findings:
        return {"text": _NOTHING, "detail": _with_top_op(summary), "action": [], "links": []}
    first = findings[0]
    step_ms = mean_step_ms(summary)
    text = first.statement
    if 0 < 100 * first.saves_ms < _SMALL_PCT * step_ms:
        saves = percent(100 * first.saves_ms / step_ms)
        text = f"Nothing big stands out: the best change found saves up to {saves} of a step. {first.title}."
    tools = [spec.link(f"See it in: {label}", href) for label, href in first.links if href.startswith("tool:")][:1]
    others = len(findings) - 1
    if others:
        tools.append(spec.link(f"{spec.count(others, 'more recommendation')}", "tool:overview"))
    return {"text": text, "detail": summary.statement, "action": prose(first.change), "links": tools}


def _unseen(summary: Overview, findings: Sequence[Finding]) -> dict[str, Any]:
    """The answer where devices took part of which nothing was recorded: what the host did is only a part of the story."""
    devices = "The device was" if summary.unseen_devices == 1 else f"The {summary.unseen_devices} devices were"
    links = [spec.link(spec.count(len(findings), "recommendation"), "tool:overview")] if findings else []
    return {
        "text": f"{devices} not recorded: every time here is the host's, which may only wait for the device.",
        "detail": summary.statement,
        "action": [{"text": UNSEEN_CHANGE}],
        "links": links,
    }


def _with_top_op(summary: Overview) -> str:
    """Where the time goes, and the op that takes most of it: a place to look where nothing is wrong."""
    if summary.step_time.empty or summary.top_ops.empty:
        return summary.statement
    op = summary.top_ops.iloc[0]
    parts = str(op["name"]).split("/")
    name = "/".join(["…", *parts[-2:]] if len(parts) > 3 else parts)
    words = f"The op that takes most is {name} ({percent(float(op['self_time_pct']))} of the self time of all ops)."
    return f"{summary.statement} {words}".strip()


def recommendations(findings: Sequence[Finding], step_ms: float, *, unseen: bool = False) -> spec.Item:
    """Return the findings in rank, each with its evidence, change and links.

    Parameters
    ----------
    findings : sequence of Finding
        The most promising first.
    step_ms : float
        Mean step time; 0 if no steps were found.
    unseen : bool
        Whether devices took part of which nothing was recorded.
    """
    if not findings and unseen:
        return spec.text(_UNSEEN, "info")
    if not findings:
        return spec.text(f"No recommendation. {_LOOKED_AT}", "info")
    rows = [
        {
            "title": finding.title,
            "note": note(finding, step_ms),
            "statement": finding.statement,
            "change": prose(finding.change),
            "evidence": [{"label": label, "value": str(value)} for label, value in finding.evidence.items()],
            "links": [spec.link(label, href) for label, href in finding.links],
        }
        for finding in findings
    ]
    return {"kind": "findings", "title": "Recommendations", "rows": rows}


def mean_step_ms(summary: Overview) -> float:
    """Mean time of the steps that findings are about; 0 if no steps were found."""
    return 0.0 if summary.step_time.empty else float(summary.step_time["mean_ms"].iloc[0])


def note(finding: Finding, step_ms: float) -> str:
    """Say what a finding may save, and how sure that is."""
    sure = f"{finding.confidence} confidence"
    if not finding.saves_ms > 0:
        return sure
    if step_ms > 0:
        share = 100 * finding.saves_ms / step_ms
        # What a straggler keeps the others waiting can be more than the average step.
        words = f" ({percent(share)})" if share <= 100 else ""
        return f"saves up to {ms(finding.saves_ms, like=step_ms)} a step{words} · {sure}"
    return f"saves up to {ms(finding.saves_ms)} of the capture · {sure}"


def prose(words: str) -> list[dict[str, Any]]:
    """Tell the code in a sentence: parts ``{text, code?}``.

    A change that begins with code (in lower case, or with ``@``) is code up to its comment.
    """
    if not words:
        return []
    if re.match(r"[a-z@]", words):
        code, _, comment = words.partition("   #")
        return [{"text": code, "code": True}, *([{"text": f" {comment.strip()}"}] if comment else [])]
    parts: list[dict[str, Any]] = []
    end = 0
    for found in _CODE.finditer(words):
        if found.start() > end:
            parts.append({"text": words[end : found.start()]})
        parts.append({"text": found.group(), "code": True})
        end = found.end()
    if end < len(words):
        parts.append({"text": words[end:]})
    return parts
