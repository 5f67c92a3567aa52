"""The report on pages that hold a saved notebook's output: nbconvert's, documentation's, and imitations of services."""

from __future__ import annotations

import html as html_text
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")
nbconvert = pytest.importorskip("nbconvert")
nbclassic = pytest.importorskip("nbclassic")

from frontends.checks import check_interactive, visit  # noqa: E402

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

PAGE = "https://notebooks.test/page.html"
REVEAL = Path(__file__).resolve().parents[2] / "js" / "node_modules" / "reveal.js"
CLASSIC = Path(nbclassic.__file__).parent / "static" / "components"
CDNJS = "https://cdnjs.cloudflare.com/ajax/libs"
# What nbconvert's templates ask for, and no report may: answered where it is at hand, else refused.
TEMPLATES = {
    f"{CDNJS}/require.js/2.1.10/require.min.js": CLASSIC / "requirejs" / "require.js",
    f"{CDNJS}/jquery/2.0.3/jquery.min.js": CLASSIC / "jquery" / "jquery.min.js",
    **{
        f"https://unpkg.com/reveal.js@4.0.2/{path}": REVEAL / path
        for path in ("dist/reveal.css", "dist/reveal.js", "dist/theme/simple.css", "plugin/notes/notes.js")
    },
}
REFUSED = f"^{re.escape(CDNJS)}/(mathjax/2.7.7/latest.js|mermaid/[\\d.]+/mermaid.esm.min.mjs|font-awesome/)|^https://fonts.googleapis.com/css"
FAILED = "net::ERR_FAILED|^MathJax is not defined"  # of those


def output_of(notebook, cell: int = 0) -> str:
    return notebook.cells[cell].outputs[0].data["text/html"]


@pytest.mark.parametrize("template", ["lab", "classic", "basic"])
def test_nbconvert_html(browser, notebook, template):
    """The template `basic` is what nbviewer puts on its own page."""
    dark = template == "lab"
    theme = {"theme": "dark"} if dark else {}
    html, _ = nbconvert.HTMLExporter(template_name=template, **theme).from_notebook_node(notebook)
    with visit(browser, files={PAGE: html, **TEMPLATES}, blocked=REFUSED) as seen:
        seen.page.goto(PAGE)
        reports = seen.page.locator(".tfprof-app")
        reports.nth(1).wait_for()
        assert reports.count() == 2
        check_interactive(seen, reports.first, dark=dark)
        seen.look(f"nbconvert-{template}")
        seen.is_clean(FAILED)


def test_nbconvert_slides(browser, notebook):
    for cell in notebook.cells:
        cell.metadata["slideshow"] = {"slide_type": "slide"}
    html, _ = nbconvert.SlidesExporter().from_notebook_node(notebook)
    with visit(browser, files={PAGE: html, **TEMPLATES}, blocked=REFUSED) as seen:
        seen.page.goto(PAGE)
        seen.page.locator(".reveal.ready").wait_for()
        check_interactive(seen, seen.page.locator(".tfprof-app").first)
        seen.look("slides")
        # The report's keys are not the slides'.
        first = seen.page.locator(".slides > section.present, .slides > section > section.present")
        assert "report  # 1" in first.last.inner_text()
        seen.page.evaluate("document.activeElement.blur()")
        seen.page.keyboard.press("ArrowRight")
        check_interactive(seen, seen.page.locator(".tfprof-app").nth(1))
        seen.is_clean(FAILED)


def test_nbviewer(browser, notebook):
    body, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)
    html = f"""<!doctype html><meta charset="utf-8"><title>nbviewer</title>
      <script src="{CDNJS}/jquery/2.0.3/jquery.min.js"></script><script src="{CDNJS}/require.js/2.1.10/require.min.js"></script>
      <body class="nbviewer"><div class="navbar"></div><div id="notebook-container">{body}</div></body>"""
    with visit(browser, files={PAGE: html, **TEMPLATES}) as seen:
        seen.page.goto(PAGE)
        assert seen.page.evaluate("define.amd !== undefined")
        check_interactive(seen, seen.page.locator(".tfprof-app").first, dark=False)
        assert seen.page.evaluate("globalThis.Bokeh") is None
        seen.look("nbviewer")
        seen.is_clean()


@pytest.mark.parametrize("kind", ["Quarto", "MyST"])
def test_documentation_pages(browser, notebook, kind):
    """Pages of a book: several reports on one, a theme that the reader switches, require.js in Quarto's."""
    outputs = "".join(f'<div class="cell-output cell-output-display">{output_of(notebook, i)}</div>' for i in (0, 1))
    light, dark = {
        "Quarto": ('<body class="quarto-light">', "document.body.className = 'quarto-dark'"),
        "MyST": ("<body>", "document.documentElement.className = 'dark'"),
    }[kind]
    head = f'<script src="{CDNJS}/require.js/2.1.10/require.min.js"></script>' if kind == "Quarto" else ""
    html = f"""<!doctype html><html class="{"light" if kind == "MyST" else ""}"><meta charset="utf-8"><title>{kind}</title>{head}
      {light}<main style="max-width: 800px; margin: auto">{outputs}</main></body></html>"""
    with visit(browser, files={PAGE: html, **TEMPLATES}, dark=kind == "MyST") as seen:
        seen.page.goto(PAGE)
        first, second = (seen.page.locator(".tfprof-app").nth(i) for i in (0, 1))
        check_interactive(seen, first, dark=False)
        seen.page.evaluate(dark)
        check_interactive(seen, second, dark=True)
        seen.look(kind.lower())
        seen.is_clean()


#: VS Code's notebook: one web view, whose policy this is where `notebook.experimental.enableCsp` is on.
VSCODE_POLICY = (
    "default-src 'none'; script-src https://*.vscode-cdn.net 'unsafe-inline' 'unsafe-eval'; "
    "style-src https://*.vscode-cdn.net 'unsafe-inline'; img-src https://*.vscode-cdn.net https: http: data:; "
    "font-src https://*.vscode-cdn.net https:; connect-src https:; child-src https: data:;"
)
# As its renderer for HTML does: the output is parsed, then each script made anew and at once removed.
VSCODE_RENDER = """async (outputs) => {
  const policy = trustedTypes.createPolicy("notebookRenderer", {createHTML: (s) => s, createScript: (s) => s});
  for (const html of outputs) {
    const container = document.createElement("div");
    container.className = "output";
    document.querySelector("#container").append(container);
    const element = document.createElement("div");
    element.innerHTML = policy.createHTML(html);
    container.append(element);
    for (const node of [...element.getElementsByTagName("script")]) {
      const script = document.createElement("script");
      script.text = policy.createScript(node.innerText);
      if (node.type) script.setAttribute("type", node.type);
      element.append(script);
      script.remove();
    }
  }
}"""


def test_vscode_imitation(browser, notebook):
    frame = f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
      <meta http-equiv="Content-Security-Policy" content="{VSCODE_POLICY}"></head>
      <body class="vscode-dark" data-vscode-theme-kind="vscode-dark" style="background: #1e1e1e; color: #ccc">
      <div id="container"></div></body></html>"""
    outer = '<!doctype html><body><iframe sandbox="allow-scripts allow-same-origin allow-forms allow-pointer-lock allow-downloads" '
    outer += 'src="https://webview.test/fake.html" style="width: 1100px; height: 950px; border: 0"></iframe></body>'
    with visit(browser, files={PAGE: outer, "https://webview.test/fake.html": frame}) as seen:
        seen.page.goto(PAGE)
        view = seen.page.frame(url="https://webview.test/fake.html")
        view.evaluate(VSCODE_RENDER, [output_of(notebook, 0), output_of(notebook, 1)])
        check_interactive(seen, view.locator(".tfprof-app").first, dark=True)
        seen.look("vscode")
        view.evaluate("document.body.setAttribute('data-vscode-theme-kind', 'vscode-light')")
        view.evaluate("document.body.className = 'vscode-light'")
        check_interactive(seen, view.locator(".tfprof-app").nth(1), dark=False)
        seen.is_clean()


# Colab: a frame an output, of another origin; here of none at all, where even asking for storage is an error.
COLAB_SANDBOX = "allow-downloads allow-forms allow-pointer-lock allow-popups allow-scripts"


def test_colab_imitation(browser, notebook):
    def frame(dark: bool, cell: int) -> str:
        html = f"""<!doctype html><html theme="{"dark" if dark else ""}"><meta charset="utf-8">
          <script>let denied; try {{ localStorage; }} catch (error) {{ denied = true; }} globalThis.denied = denied;</script>
          <body style="background: {"#383838" if dark else "#fff"}"><div id="output-area"><div id="output-body"></div></div>
          <script>
            const range = document.createRange(); range.selectNode(document.body);
            document.getElementById("output-body").append(range.createContextualFragment({script_text(output_of(notebook, cell))}));
          </script></body></html>"""
        return f'<iframe sandbox="{COLAB_SANDBOX}" srcdoc="{html_text.escape(html)}" style="width: 100%; height: 900px"></iframe>'

    page = f"<!doctype html><html theme='dark'><body>{frame(True, 0)}{frame(False, 1)}</body></html>"
    with visit(browser, files={PAGE: page}) as seen:
        seen.page.goto(PAGE)
        for frame_, dark in zip(seen.page.frames[1:], (True, False), strict=True):
            assert frame_.evaluate("globalThis.denied")
            check_interactive(seen, frame_.locator(".tfprof-app"), dark=dark)
            seen.look(f"colab-{'dark' if dark else 'light'}")
        seen.is_clean()


def script_text(text: str) -> str:
    """Return a text as a literal of a script in a page."""
    return json.dumps(text).replace("<", "\\u003c")


OTHER = "2.4.99"


def other_bokeh() -> str:
    """BokehJS as the page of somebody who has another version of it."""
    import bokeh

    code = (Path(bokeh.__file__).parent / "server" / "static" / "js" / "bokeh.min.js").read_text(encoding="utf-8")
    assert f'"{bokeh.__version__}"' in code
    return code.replace(bokeh.__version__, OTHER)


def their_figure() -> dict:
    from bokeh.embed import json_item
    from bokeh.plotting import figure

    theirs = figure(height=120, width=300)
    theirs.scatter([1, 2], [1, 2])
    return json_item(theirs)


DRAW_THEIRS = """async (item) => {
  const host = document.createElement("div");
  host.className = "their-figure";
  document.body.prepend(host);
  await Bokeh.embed.embed_item({...item, version: Bokeh.version, doc: {...item.doc, version: Bokeh.version}}, host);
}"""


@pytest.mark.parametrize("when", ["before", "after", "output_notebook"])
def test_other_bokehs(browser, notebook, when):
    """Another BokehJS that was there before, or comes after; or the same one, as `output_notebook()` and Panel load it."""
    import bokeh

    same = when == "output_notebook"
    code = other_bokeh() if not same else other_bokeh().replace(OTHER, bokeh.__version__)
    theirs = f"<script>{code.replace('</script', '<' + chr(92) + '/script')}</script>"
    html = f"""<!doctype html><html><meta charset="utf-8"><body>{"" if when == "after" else theirs}
      {output_of(notebook)}</body></html>"""
    with visit(browser, files={PAGE: html}) as seen:
        seen.page.goto(PAGE)
        report = seen.page.locator(".tfprof-app")
        report.locator("canvas").first.wait_for()
        if when == "after":
            assert seen.page.evaluate("globalThis.Bokeh") is None
            seen.page.add_script_tag(content=code)
        version = bokeh.__version__ if same else OTHER
        assert seen.page.evaluate("Bokeh.version") == version
        # It lists itself there, and only itself.
        versions = "Object.keys(Bokeh).filter((key) => /^\\d/.test(key))"
        assert seen.page.evaluate(versions) == [version]
        seen.page.evaluate(DRAW_THEIRS, their_figure())
        seen.page.locator(".their-figure canvas").first.wait_for()
        check_interactive(seen, report)
        assert seen.page.evaluate("Bokeh.version") == version
        assert seen.page.evaluate(versions) == [version]
        seen.page.evaluate(DRAW_THEIRS, their_figure())
        seen.page.locator(".their-figure canvas").nth(1).wait_for()
        seen.look(f"bokeh-{when}")
        seen.is_clean()


def test_exported_file(browser, report, tmp_path):
    path = report.to_html(tmp_path / "report.html")
    for dark in (False, True):
        with visit(browser, files={path.as_uri(): path}, dark=dark) as seen:
            seen.page.goto(path.as_uri())
            check_interactive(seen, seen.page.locator(".tfprof-app"), dark=dark)
            seen.look(f"file-{'dark' if dark else 'light'}")
            seen.is_clean()
