"""Reports as HTML that holds everything it needs: for a notebook's output, and as a file.

Inline scripts are the only code on the page, and nothing is fetched. Data is base64 in script elements
of a type that no browser runs, so nothing in a profile can end an element or start one.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape

from tfprof_widgets.display import assets
from tfprof_widgets.display.payload import Payload
from tfprof_widgets.views.visible import visible

_NOTEBOOK_HINT = (
    "This is the report's summary. For the interactive report, trust the notebook "
    "(<em>Trust Notebook</em> in JupyterLab's command palette, or in Notebook's <em>File</em> menu) or run the cell; "
    "viewers that run no scripts, such as GitHub's, show only this."
)
_PAGE_HINT = "This is the report's summary. The interactive report needs a browser with JavaScript."

# The page's MathJax, if it has one, keeps off.
_ROOT = "tfprof-report tex2jax_ignore mathjax_ignore"

# Finds its roots by id (a module script has no `currentScript`): an output shown twice gives two. The app is
# run from a script element, which is allowed wherever this script was.
_BOOT = """
for (const root of document.querySelectorAll('[id="tfprof-@ID@"]')) {
  if (root.tfprofBooted) continue;
  root.tfprofBooted = true;
  try {
    if (!globalThis.__tfprof_apps?.["@KEY@"]) {
      const packed = root.querySelector('script[data-tfprof="app"]').textContent;
      const bytes = Uint8Array.fromBase64?.(packed) ?? Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      const script = document.createElement("script");
      script.textContent = 'globalThis.__tfprof_app_key = "@KEY@";' + (await new Response(stream).text());
      document.head.append(script);
      script.remove();
    }
    await globalThis.__tfprof_apps["@KEY@"].mount(root);
  } catch (error) {
    console.error("tfprof_widgets:", error);
    const message = document.createElement("p");
    message.setAttribute("role", "alert");
    message.textContent = "The interactive report could not start: " + (error?.message ?? error);
    root.querySelector(".tfprof-mount")?.replaceChildren(message);
  }
}
"""

# The policy lets nothing be fetched, whatever a name in a profile looks like. BokehJS compiles callbacks
# ('unsafe-eval') and has its icons and style sheets in data: and blob: addresses.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; \
style-src 'unsafe-inline' blob:; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'">
<link rel="icon" href="data:,">
<title>@TITLE@</title>
<style>
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 16px; max-width: 1600px; background: #f1f3f5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.tfprof-static table { display: block; width: max-content; max-width: 100%; overflow-x: auto; border-collapse: collapse;
  font-size: 90%; font-variant-numeric: tabular-nums; }
.tfprof-static :is(th, td) { padding: 2px 8px; border-bottom: 1px solid #c4cad1; }
.tfprof-static :is(p, li) { overflow-wrap: anywhere; }
.tfprof-static td[align=left] { overflow-wrap: break-word; }
.tfprof-static th { vertical-align: bottom; }
.tfprof-static tr { break-inside: avoid; }
@media print {
  body { padding: 0; background: none; font-size: 10pt; }
  .tfprof-static table { display: table; width: auto; }
}
@media (prefers-color-scheme: dark) { body { background: #0e1013; } }
</style>
</head>
<body>
@REPORT@
</body>
</html>
"""


def report_html(payload: Payload, static_html: str) -> str:
    """Return a notebook output (``text/html``) that holds the whole report.

    Parameters
    ----------
    payload : Payload
        The report.
    static_html : str
        The summary that is shown where no script runs: HTML, already escaped (`static_summary`).
    """
    return _root(payload, static_html, _NOTEBOOK_HINT)


def report_page(payload: Payload, static_html: str, title: str) -> str:
    """Return a complete HTML document that holds the whole report and fetches nothing.

    Parameters
    ----------
    payload, static_html
        As for `report_html`.
    title : str
        The document's title: plain text.
    """
    head, tail = _PAGE.split("@REPORT@")
    return head.replace("@TITLE@", escape(visible(title))) + _root(payload, static_html, _PAGE_HINT) + tail


def least_size(payload: Payload) -> int:
    """Return how many bytes a page has at least: those of its tables and of the code, without making it."""
    packed = [*payload.tables.values(), assets.front_end_gz("inline.js"), assets.bokeh_gz()]
    return sum(map(len, packed)) * 4 // 3


def _root(payload: Payload, static_html: str, hint: str) -> str:
    app = assets.front_end_gz("inline.js")
    key = hashlib.sha256(app).hexdigest()[:16]
    blocks = {
        "spec": payload.spec_gz(),
        **{f"table:{name}": packed for name, packed in payload.tables.items()},
        "app": app,
        "bokeh": assets.bokeh_gz(),
    }
    return "\n".join(
        [
            f'<div class="{_ROOT}" id="tfprof-{payload.id}" data-tfprof-version="{escape(payload.version)}">',
            f'<div class="tfprof-static"><p><small>{hint}</small></p>{static_html}</div>',
            '<div class="tfprof-mount"></div>',
            *(_block(name, data) for name, data in blocks.items()),
            f'<script type="module">{_BOOT.replace("@ID@", payload.id).replace("@KEY@", key)}</script>',
            "</div>",
        ]
    )


def _block(name: str, data: bytes) -> str:
    text = base64.b64encode(data).decode("ascii")
    return f'<script type="application/octet-stream" data-tfprof="{escape(name)}">{text}</script>'
