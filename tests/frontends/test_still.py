"""Where no script runs: GitHub's page, e-mail, paper. The summary has to say what counts."""

from __future__ import annotations

import io
import re

import pytest

pytest.importorskip("playwright.sync_api")
nbconvert = pytest.importorskip("nbconvert")
nh3 = pytest.importorskip("nh3")
pypdf = pytest.importorskip("pypdf")

from frontends.checks import check_summary, visit  # noqa: E402

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

PAGE = "https://github.test/page.html"
# What GitHub's sanitizer (html-pipeline's allow list) leaves of a notebook's output.
GITHUB_TAGS = set(
    re.findall(
        r"\w+",
        "h1 h2 h3 h4 h5 h6 br b i strong em a pre code img tt div ins del sup sub p picture ol ul table thead tbody tfoot "
        "blockquote dl dt dd kbd q samp var hr ruby rt rp li tr td th s strike summary details caption figure figcaption "
        "abbr bdo cite dfn mark small source span time wbr",
    )
)
GITHUB_ATTRIBUTES = {
    "*": {"align", "alt", "border", "colspan", "dir", "height", "hspace", "rowspan", "title", "valign", "width"}
}
GITHUB_STYLE = """body { font: 16px/1.5 sans-serif; max-width: 900px; margin: 24px auto; }
  table { border-collapse: collapse; font-size: 14px; } th, td { border: 1px solid #d0d7de; padding: 6px 13px; }"""


def sanitized(html: str) -> str:
    return nh3.clean(
        html, tags=GITHUB_TAGS, attributes=GITHUB_ATTRIBUTES, clean_content_tags={"script", "style"}, link_rel=None
    )


@pytest.mark.parametrize("where", ["GitHub", "e-mail"])
def test_sanitized(browser, notebook, where):
    """GitHub's page of a notebook, and mail programs: no script, no style, no id, no class."""
    html = sanitized(notebook.cells[0].outputs[0].data["text/html"])
    assert set(re.findall(r"<(\w+)", html)) <= GITHUB_TAGS
    assert set(re.findall(r" (\w+)=", re.sub(r">[^<]*<", "><", html))) == {"align"}
    style = f"<style>{GITHUB_STYLE}</style>" if where == "GitHub" else ""
    page = f"<!doctype html><html><meta charset='utf-8'>{style}<body>{html}</body></html>"
    with visit(browser, files={PAGE: page}, width=1000) as seen:
        seen.page.goto(PAGE)
        text = seen.page.locator("body").inner_text()
        check_summary(text)
        assert "trust the notebook" in text
        assert seen.page.locator("table").count() == 3
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        seen.page.set_viewport_size({"width": 1000, "height": 1400})
        seen.look(f"sanitized-{where}")
        seen.is_clean()


def test_plain_text(report):
    """What a terminal, `git diff` and a text-only mail show."""
    check_summary(report.text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", report.text)
    # Longer lines than that are no table any more.
    assert max(map(len, report.text.splitlines())) < 1200


def test_latex(notebook):
    """nbconvert's way to PDF over LaTeX takes the text."""
    tex, _ = nbconvert.LatexExporter().from_notebook_node(notebook)
    assert tex.count("Where the time of an average step goes") == 2
    assert "globalThis" in tex  # as text
    assert "tfprof-mount" not in tex


def printed(page) -> str:
    """Text of the page as Chromium puts it on paper."""
    file = pypdf.PdfReader(io.BytesIO(page.pdf(format="A4", print_background=True)))
    assert len(file.pages) < 30
    return "\n".join(sheet.extract_text() for sheet in file.pages)


@pytest.mark.parametrize("what", ["webpdf", "file"])
def test_paper(browser, notebook, report, tmp_path, what):
    """As nbconvert's webpdf does, and as a reader who prints the exported file: the whole summary, wherever the reader was."""
    if what == "webpdf":
        html, _ = nbconvert.HTMLExporter(template_name="lab").from_notebook_node(notebook)
    else:
        html = report.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    with visit(browser, files={PAGE: html}, blocked=r"^https://cdnjs\.cloudflare\.com/ajax/libs/", width=794) as seen:
        seen.page.goto(PAGE)
        app = seen.page.locator(".tfprof-app").first
        app.locator("canvas").first.wait_for()
        app.get_by_role("tab", name="Trace").click()
        seen.page.emulate_media(media="print")
        assert not app.is_visible()
        summary = seen.page.locator(".tfprof-static").first
        check_summary(summary.inner_text())
        # Nothing is wider than the sheet.
        assert summary.evaluate(
            "e => [...e.querySelectorAll('*')].every((x) => x.getBoundingClientRect().right <= innerWidth)"
        )
        text = printed(seen.page)
        for words in ("Highly input-bound", "Recommendations", "Step time in ms", "Occurrences"):
            assert text.count(words) >= (2 if what == "webpdf" else 1), words
        # A long name may be broken, and is all there.
        assert "SparseSoftmaxCrossEntropyWithLogits" in re.sub(r"\s", "", text)
        seen.look(f"paper-{what}")
        # Back on the screen it is as it was.
        seen.page.emulate_media(media="screen")
        assert app.is_visible()
        assert not summary.is_visible()
        seen.is_clean("net::ERR_FAILED")
