/** Colours as bytes: what a box looks like on the page's paper. */

export type Rgb = readonly [number, number, number];

export function parseColor(hex: string): Rgb {
  const value = /^#[0-9a-f]{6}$/i.test(hex) ? parseInt(hex.slice(1), 16) : 0x8b9095;
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Relative luminance, as WCAG defines it. */
function luminance(color: Rgb): number {
  const [r, g, b] = color.map((channel) => {
    const c = channel / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Black or white, whichever reads better on `fill`. */
export function textOn(fill: Rgb): string {
  return luminance(fill) > 0.179 ? "#000000" : "#ffffff";
}

/** `share` of `color` over `paper`. */
export function mix(color: Rgb, paper: Rgb, share: number): Rgb {
  const at = (i: 0 | 1 | 2) => Math.round(color[i] * share + paper[i] * (1 - share));
  return [at(0), at(1), at(2)];
}

/** How much of its colour a bar of a shade (1 to `levels`) has: even the lightest is seen. */
export function shadeShare(level: number, levels: number): number {
  return level === 0 ? 1 : 0.34 + 0.66 * ((level - 1) / (levels - 1));
}
