/**
 * BokehJS reads `$$…$$`, `\[…\]` and `\(…\)` in its texts as mathematics, and may then ask a CDN for
 * MathJax. Names in a profile are never mathematics: a zero-width space keeps the two characters of an
 * opening delimiter apart. Used on every figure of the payload (figure.ts); a script that sets a text
 * of a Bokeh model later on passes it through here itself.
 */
export function plainText(text: string): string {
  return text.replace(/\$(?=\$)|\\(?=[[(])/g, "$&\u200b");
}
