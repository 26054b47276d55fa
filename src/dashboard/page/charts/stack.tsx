/** A chart over time, of stacked bars or of lines. The pointer or the arrow keys select a step; a click or Enter opens it. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { stepLabel, stepTitle } from '../format/times.ts';
import { useWidth } from './use-width.ts';

export interface Series {
  readonly name: string;
  /** A class of the style sheet. */
  readonly colour: string;
  /** One for each step; null: nothing was measured. */
  readonly values: readonly (number | null)[];
}

interface StackProps {
  readonly label: string;
  readonly steps: readonly string[];
  /** From bottom to top. */
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  /** Lines for values that have no sum, such as percentiles. */
  readonly isLines: boolean;
  /** Opens the requests of a step. */
  readonly onOpen: (step: string) => void;
  readonly height?: number;
  /** The minimum width of the labels of values, in characters, so that the axes of several charts are aligned. */
  readonly axisChars?: number;
  /** The label of a step on the axis, and its name in the tooltip. Absent: of days and hours. */
  readonly labelOf?: (step: string) => string;
  readonly titleOf?: (step: string) => string;
}

const TOP = 8;
const BOTTOM = 20;
const LABEL_PX = 64;
const CHAR_PX = 6.6;

export function Stack(props: StackProps) {
  const { label, steps, series, format, isLines, onOpen } = props;
  const { height = 200, axisChars = 0, labelOf = stepLabel, titleOf = stepTitle } = props;
  const plot = height - TOP - BOTTOM;
  const tip = useRef<HTMLDivElement>(null);
  const [box, width] = useWidth<HTMLDivElement>();
  const [at, setAt] = useState<number | null>(null);
  const sums = steps.map((_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0));
  const top = niceTop(Math.max(...(isLines ? series.flatMap(({ values }) => values.map(Number)) : sums), 0));
  const ticks = top === 0 ? [0] : [0, top / 2, top];
  const left = Math.ceil(Math.max(axisChars, ...ticks.map((tick) => format(tick).length)) * CHAR_PX) + 10;
  const slot = Math.max(0, width - left) / steps.length;
  const gap = Math.min(6, slot * 0.2);
  const every = Math.ceil(LABEL_PX / slot);
  const x = (i: number) => left + i * slot;
  const y = (value: number) => TOP + plot * (1 - value / (top || 1));
  const go = (to: number) => setAt(Math.max(0, Math.min(steps.length - 1, to)));
  // The content security policy forbids style attributes, but not this.
  useLayoutEffect(() => {
    const { current } = tip;
    if (current === null || at === null) return;
    const { offsetWidth } = current;
    const right = x(at) + slot + 6;
    const isBeside = right + offsetWidth <= width;
    const beside = isBeside ? right : x(at) - offsetWidth - 6;
    current.style.left = `${Math.max(0, Math.min(width - offsetWidth, beside))}px`;
  });
  const open = () => {
    const step = at === null ? undefined : steps[at];
    if (step !== undefined) onOpen(step);
  };
  return (
    <figure class="chart">
      <div
        ref={box}
        role="group"
        tabIndex={0}
        class="plot"
        aria-label={`${label}: the arrow keys read each ${isLines ? 'point' : 'bar'}, Enter opens its requests`}
        onClick={open}
        onKeyDown={({ key }) => {
          if (key === 'Enter') open();
          if (key === 'ArrowRight') go((at ?? -1) + 1);
          if (key === 'ArrowLeft') go((at ?? steps.length) - 1);
        }}
        onPointerMove={({ clientX, currentTarget }) =>
          go(Math.floor((clientX - currentTarget.getBoundingClientRect().left - left) / slot))
        }
        onPointerLeave={() => setAt(null)}
        onBlur={() => setAt(null)}
      >
        <svg width={width} height={height} aria-hidden="true">
          <Textures />
          {ticks.map((tick) => (
            <g key={tick}>
              <path class="grid" d={`M${left} ${Math.round(y(tick)) + 0.5}H${width}`} />
              <text x={left - 6} y={y(tick) + 4} text-anchor="end">
                {format(tick)}
              </text>
            </g>
          ))}
          {steps.map((step, i) => {
            let below = 0;
            return (
              <g key={step} class={at === i ? 'bar at' : 'bar'}>
                {isLines && <rect class="band" x={x(i)} width={slot} y={TOP} height={plot} />}
                {series.map(({ colour, values }, s) => {
                  if (isLines) return null;
                  const value = values[i] ?? 0;
                  below += value;
                  if (value <= 0) return null;
                  const box = {
                    x: x(i) + gap / 2,
                    width: slot - gap,
                    y: y(below),
                    height: Math.max(0.5, y(below - value) - y(below)),
                  };
                  const [, texture] = colour.split(' ');
                  return (
                    <g key={s}>
                      <rect class={colour} {...box} />
                      {texture !== undefined && <rect class={`over-${texture}`} {...box} />}
                    </g>
                  );
                })}
                {i % every === 0 && x(i) + LABEL_PX / 2 < width && (
                  <text x={x(i)} y={height - 4}>
                    {labelOf(step)}
                  </text>
                )}
              </g>
            );
          })}
          {isLines &&
            series.map(({ colour, values }) => (
              <g key={colour} class={colour}>
                <path class="line" d={pathOf(values, (i) => x(i) + slot / 2, y)} />
                {values.map(
                  (value, i) =>
                    value !== null && (
                      <circle key={i} cx={x(i) + slot / 2} cy={y(value)} r={at === i ? 4 : 2.5} />
                    ),
                )}
              </g>
            ))}
        </svg>
        <div ref={tip} class={at === null ? 'tip sr' : 'tip'} role="status">
          {at !== null && (
            <>
              <strong>{titleOf(steps[at] ?? '')}</strong>
              {!isLines && ` – ${format(sums[at] ?? 0)}`}
              {series.map(({ name, colour, values: { [at]: value = null } }) =>
                (isLines ? value !== null : value) ? (
                  <p key={name}>
                    <span class={`swatch ${colour}`} aria-hidden="true" />
                    <bdi class="name">{name}</bdi> {format(value ?? 0)}
                  </p>
                ) : null,
              )}
            </>
          )}
        </div>
      </div>
      <figcaption>
        {label}
        {series.map(({ name, colour }) => (
          <span key={name}>
            <span class={`swatch ${colour}`} aria-hidden="true" />
            <bdi>{name}</bdi>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

/** What distinguishes series of the same colour. */
function Textures() {
  return (
    <defs>
      <pattern id="t1" width="6" height="6" patternUnits="userSpaceOnUse">
        <path class="texture" d="M0 6L6 0" />
      </pattern>
      <pattern id="t2" width="6" height="6" patternUnits="userSpaceOnUse">
        <path class="texture" d="M0 3H6" />
      </pattern>
    </defs>
  );
}

/** A line through the measured values, with a gap where nothing was measured. */
function pathOf(
  values: readonly (number | null)[],
  x: (i: number) => number,
  y: (value: number) => number,
): string {
  return values
    .map((value, i) => {
      const isAfterGap = values[i - 1] === undefined || values[i - 1] === null;
      return value === null ? '' : `${isAfterGap ? 'M' : 'L'}${x(i)} ${y(value)}`;
    })
    .join('');
}

/** The next larger round number whose half is also round. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return value && ([1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value) ?? 10) * power;
}
