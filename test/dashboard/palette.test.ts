/** Tests the colours of charts: their contrast, and that readers with any colour blindness can tell them apart (D3, D9). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const PAGE = join(import.meta.dirname, '..', '..', 'src', 'dashboard', 'page');
const CHARTS = readFileSync(join(PAGE, 'charts', 'charts.css'), 'utf8');
const BASE = readFileSync(join(PAGE, 'base.css'), 'utf8');

type Rgb = readonly [number, number, number];

/** Machado, Oliveira, Fernandes 2009, "A Physiologically-based Model for Simulation of Color Vision Deficiency", at severity 1. */
const BLINDNESS: Readonly<Record<string, readonly [Rgb, Rgb, Rgb]>> = {
  none: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

/** Linear light. */
function rgbOf(hex: string): Rgb {
  const full = hex.length === 4 ? `#${[...hex.slice(1)].map((digit) => digit + digit).join('')}` : hex;
  const linear = (at: number) => {
    const value = Number.parseInt(full.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [linear(1), linear(3), linear(5)];
}

const apply = (matrix: readonly [Rgb, Rgb, Rgb], [r, g, b]: Rgb): Rgb => {
  const [x, y, z] = matrix.map(([p, q, s]) => p * r + q * g + s * b);
  return [x ?? 0, y ?? 0, z ?? 0];
};

/** https://bottosson.github.io/posts/oklab/ */
function oklabOf(rgb: Rgb): Rgb {
  const lms = apply(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ],
    rgb,
  );
  return apply(
    [
      [0.2104542553, 0.793617785, -0.0040720468],
      [1.9779984951, -2.428592205, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.808675766],
    ],
    lms.map(Math.cbrt) as unknown as Rgb,
  );
}

function distance(a: string, b: string, matrix: readonly [Rgb, Rgb, Rgb]): number {
  const seen = (hex: string) => apply(matrix, rgbOf(hex)).map((part) => Math.min(1, Math.max(0, part)));
  const [one, other] = [a, b].map((hex) => oklabOf(seen(hex) as unknown as Rgb));
  return Math.hypot(...(one ?? []).map((part, i) => part - (other?.[i] ?? 0)));
}

/** WCAG 2.2's contrast ratio: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio */
function contrast(a: string, b: string): number {
  const [x = 0, y = 0] = [a, b]
    .map((hex) => rgbOf(hex))
    .map(([r, g, blue]) => 0.2126 * r + 0.7152 * g + 0.0722 * blue)
    .sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
}

/** The two values of a variable, of the light and of the dark scheme. */
function valuesOf(css: string, before: RegExp): readonly string[] {
  const at = before.exec(css);
  const [, light = '', dark = ''] =
    /light-dark\((#\w+), (#\w+)\)/.exec(css.slice((at?.index ?? -1) + (at?.[0].length ?? 0))) ?? [];
  return [light, dark];
}

describe.each([
  ['light', 0],
  ['dark', 1],
] as const)('D3 D9 the colours of charts, %s', (_, scheme) => {
  const ground = valuesOf(BASE, /--bg: /)[scheme] ?? '';
  const grey = valuesOf(BASE, /--edge: /)[scheme] ?? '';
  const danger = valuesOf(BASE, /--danger: /)[scheme] ?? '';
  const colours = Array.from(
    { length: 6 },
    (__, i) => valuesOf(CHARTS, new RegExp(`\\.c${i} \\{\\s*--own: `))[scheme] ?? '',
  );

  test('six, each with a contrast of at least 3:1 against the ground, as the one of failures', () => {
    expect(new Set(colours).size).toBe(6);
    for (const colour of [...colours, danger])
      expect(contrast(colour, ground), colour).toBeGreaterThanOrEqual(3);
  });

  test.each(Object.entries(BLINDNESS))(
    'with colour blindness %s any two differ, also from the grey',
    (name, matrix) => {
      // A step of 0.02 is just seen.
      const least = name === 'tritanopia' ? 0.06 : 0.085;
      const all = [...colours, grey];
      for (const [i, one] of all.entries())
        for (const other of all.slice(0, i))
          expect(distance(one, other, matrix), `${one} ${other}`).toBeGreaterThan(least);
    },
  );
});
