"""Parts of a tab by themselves: what remains of its items, and which tables they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .spec import Item, Tab


def only(items: Sequence[Item], wanted: Callable[[Item], bool]) -> list[Item]:
    """Return the items that are wanted, within the rows and switches that they are in."""
    kept = []
    for item in items:
        if wanted(item):
            kept.append(item)
        elif item["kind"] == "row":
            kept += only(item["children"], wanted)
        elif item["kind"] == "switch":
            cases = {value: only(case, wanted) for value, case in item["cases"].items()}
            if any(cases.values()):
                kept.append({**item, "cases": cases})
    return kept


def is_table(item: Item) -> bool:
    """Whether an item is a table."""
    return bool(item["kind"] == "table")


def is_text(item: Item) -> bool:
    """Whether an item is a text: where a tool has nothing to show, it says why."""
    return bool(item["kind"] == "text")


def is_step_chart(item: Item) -> bool:
    """Whether an item is a chart of the Overview's step time, its legend (facts with colours), or a text on what it leaves out."""
    if item["kind"] == "facts":
        return any("color" in row for row in item["rows"])
    return is_text(item) or (item["kind"] == "figure" and item["title"].startswith("Step time: "))


def tables_of(tab: Tab, names: Sequence[str]) -> set[str]:
    """Return which of the payload's tables a tab names."""
    return set(names) & set(_texts(tab["items"]))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        # Figures are big and name no table.
        yield from (text for key, each in value.items() if key != "figure" for text in _texts(each))
    elif isinstance(value, (list, tuple)):
        yield from (text for each in value for text in _texts(each))
