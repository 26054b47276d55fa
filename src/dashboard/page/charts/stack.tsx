/** A chart over time, of stacked bars or of lines. The pointer or the arrow keys select a step; a click or Enter opens it. */
import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { stepLabel, stepTitle } from '../format/times.ts';
import { useWidth } from './use-width.ts';

export interface Series {
  readonly name: string;
  /** The id of the group that it is of. Absent: nothing selects it. */
  readonly group?: string;
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
  /** Opens the requests of a step, or those of the group whose part of the bar is clicked. Absent: nothing tells them apart. */
  readonly onOpen?: (step: string, group?: string) => void;
  /** Where the requests of a group are, to which its name in the legend leads. */
  readonly hrefOf?: (group: string) => string;
  /** A sentence below the chart. */
  readonly note?: string | false;
  readonly height?: number;
  /** The minimum width of the labels of values, in characters, so that the axes of several charts are aligned. */
  readonly axisChars?: number;
  /** The label of a step on the axis, and its name in the tooltip. Absent: of days and hours. */
  readonly labelOf?: (step: string) => string;
  readonly titleOf?: (step: string) => string;
  /** The label of a step is its lower bound: it stands at its left edge. */
  readonly isRange?: boolean;
}

export function Stack(props: StackProps) {
  const {
    label,
    steps,
    series,
    format,
    isLines,
    onOpen,
    hrefOf,
    note,
    labelOf = stepLabel,
    titleOf = stepTitle,
    isRange = false,
  } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  /** The index of the selected step. */
  const [at, setAt] = useState<number | null>(null);
  const scale = scaleOf(props, width);
  const tip = useTip(scale, at);
  const go = (to: number) => setAt(Math.max(0, Math.min(steps.length - 1, to)));
  const open = (target: EventTarget | null = null) => {
    const step = at === null ? undefined : steps[at];
    const part = target instanceof SVGElement ? series[Number(target.dataset.series)] : undefined;
    if (step !== undefined) onOpen?.(step, part?.group);
  };
  return (
    <figure class="chart">
      <Legend label={label} series={series} hrefOf={hrefOf} />
      <div
        ref={box}
        role="group"
        tabIndex={0}
        class={onOpen ? 'plot opens' : 'plot'}
        aria-label={`${label}: the arrow keys read each ${isLines ? 'point' : 'bar'}${onOpen ? ', Enter opens its requests' : ''}`}
        onClick={({ target }) => open(target)}
        onKeyDown={({ key }) => {
          if (key === 'Enter') open();
          if (key === 'ArrowRight') go((at ?? -1) + 1);
          if (key === 'ArrowLeft') go((at ?? steps.length) - 1);
        }}
        onPointerMove={({ clientX, currentTarget }) =>
          go(Math.floor((clientX - currentTarget.getBoundingClientRect().left - scale.left) / scale.slot))
        }
        onPointerLeave={() => setAt(null)}
        onBlur={() => setAt(null)}
      >
        <svg width={width} height={scale.height} aria-hidden="true">
          <Textures />
          <Values scale={scale} format={format} />
          {steps.map((step, i) => (
            <g key={step} class={at === i ? 'bar at' : 'bar'}>
              {isLines ? (
                <rect class="band" x={scale.x(i)} width={scale.slot} y={TOP} height={scale.plot} />
              ) : (
                <Bar scale={scale} series={series} at={i} />
              )}
              {scale.hasLabel(i) && (
                <text
                  x={scale.x(i) + (isRange ? 0 : scale.slot / 2)}
                  y={scale.height - 4}
                  text-anchor={isRange ? 'start' : 'middle'}
                >
                  {labelOf(step)}
                </text>
              )}
            </g>
          ))}
          {isLines && series.map((one) => <Line key={one.colour} scale={scale} of={one} at={at} />)}
        </svg>
        <div ref={tip} class={at === null ? 'tip sr' : 'tip'} role="status">
          {at !== null && (
            <Tip
              title={titleOf(steps[at] ?? '')}
              sum={isLines ? null : (scale.sums[at] ?? 0)}
              {...{ series, at, format }}
            />
          )}
        </div>
      </div>
      {note && <p class="hint">{note}</p>}
    </figure>
  );
}

const TOP = 8;
const BOTTOM = 20;
const LABEL_PX = 64;
const CHAR_PX = 6.6;

/** Where what is drawn, in pixels. */
interface Scale {
  readonly width: number;
  readonly height: number;
  /** The height without the labels of steps. */
  readonly plot: number;
  /** The width of the labels of values. */
  readonly left: number;
  /** The width of a step. */
  readonly slot: number;
  /** Between two bars. */
  readonly gap: number;
  /** The labelled values. */
  readonly ticks: readonly number[];
  /** Of all series, for each step. */
  readonly sums: readonly number[];
  /** The left edge of a step. */
  readonly x: (step: number) => number;
  readonly y: (value: number) => number;
  /** Whether there is room for the label of a step. */
  readonly hasLabel: (step: number) => boolean;
}

function scaleOf(
  { steps, series, format, isLines, isRange, height = 200, axisChars = 0 }: StackProps,
  width: number,
): Scale {
  const plot = height - TOP - BOTTOM;
  const sums = steps.map((_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0));
  const round = niceTop(
    Math.max(...(isLines ? series.flatMap(({ values }) => values.map(Number)) : sums), 0),
  );
  // Half of a count is one, too.
  const top = round + (!isLines && sums.every(Number.isInteger) ? round % 2 : 0);
  const ticks = top === 0 ? [0] : [0, top / 2, top];
  const left = Math.ceil(Math.max(axisChars, ...ticks.map((tick) => format(tick).length)) * CHAR_PX) + 10;
  const slot = Math.max(0, width - left) / steps.length;
  const every = Math.ceil(LABEL_PX / slot);
  const x = (step: number) => left + step * slot;
  return {
    ...{ width, height, plot, left, slot, ticks, sums, x },
    gap: Math.min(6, slot * 0.2),
    y: (value) => TOP + plot * (1 - value / (top || 1)),
    hasLabel: (step) =>
      step % every === 0 && x(step) + (isRange ? LABEL_PX / 2 : slot / 2 + LABEL_PX / 3) < width,
  };
}

/** The next larger round number whose half is also round. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return value && ([1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value) ?? 10) * power;
}

/** Places the tooltip beside the selected step. */
function useTip({ x, slot, width }: Scale, at: number | null): RefObject<HTMLDivElement | null> {
  const tip = useRef<HTMLDivElement>(null);
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
  return tip;
}

/** The labelled values with their lines. */
function Values({ scale, format }: { scale: Scale; format: (value: number) => string }) {
  return (
    <>
      {scale.ticks.map((tick) => (
        <g key={tick}>
          <path class="grid" d={`M${scale.left} ${Math.round(scale.y(tick)) + 0.5}H${scale.width}`} />
          <text x={scale.left - 6} y={scale.y(tick) + 4} text-anchor="end">
            {format(tick)}
          </text>
        </g>
      ))}
    </>
  );
}

interface BarProps {
  readonly scale: Scale;
  readonly series: readonly Series[];
  readonly at: number;
}

function Bar({ scale, series, at }: BarProps) {
  const { x, y, slot, gap } = scale;
  let below = 0;
  return (
    <>
      {series.map(({ colour, values }, s) => {
        const value = values[at] ?? 0;
        below += value;
        if (value <= 0) return null;
        const box = {
          x: x(at) + gap / 2,
          width: slot - gap,
          y: y(below),
          height: Math.max(0.5, y(below - value) - y(below)),
          'data-series': s,
        };
        const [, texture] = colour.split(' ');
        return (
          <g key={s}>
            <rect class={colour} {...box} />
            {texture !== undefined && <rect class={`over-${texture}`} {...box} />}
          </g>
        );
      })}
    </>
  );
}

interface LineProps {
  readonly scale: Scale;
  readonly of: Series;
  readonly at: number | null;
}

function Line({ scale: { x, y, slot }, of: { colour, values }, at }: LineProps) {
  const centre = (i: number) => x(i) + slot / 2;
  return (
    <g class={colour}>
      <path class="line" d={pathOf(values, centre, y)} />
      {values.map(
        (value, i) =>
          value !== null && <circle key={i} cx={centre(i)} cy={y(value)} r={at === i ? 4 : 2.5} />,
      )}
    </g>
  );
}

/** A line through the measured values, with a gap where nothing was measured. */
export function pathOf(
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

interface TipProps {
  readonly title: string;
  /** Null: the values have none. */
  readonly sum: number | null;
  readonly series: readonly Series[];
  readonly at: number;
  readonly format: (value: number) => string;
}

/** The values of a step. Parts of a bar that are 0 are left out, and so are points that were not measured. */
function Tip({ title, sum, series, at, format }: TipProps) {
  return (
    <>
      <strong>{title}</strong>
      {sum !== null && ` – ${format(sum)}`}
      {series.map(({ name, colour, values: { [at]: value = null } }) =>
        (sum === null ? value !== null : value) ? (
          <p key={name}>
            <span class={`swatch ${colour}`} aria-hidden="true" />
            <bdi class="name">{name}</bdi> {format(value ?? 0)}
          </p>
        ) : null,
      )}
    </>
  );
}

interface LegendProps extends Pick<StackProps, 'label' | 'series'> {
  readonly hrefOf: StackProps['hrefOf'] | undefined;
}

/** The name of the chart, and those of its series where there are several or where they lead to their requests. */
function Legend({ label, series, hrefOf }: LegendProps) {
  const isNamed = series.length > 1 || series.some(({ group }) => group !== undefined);
  return (
    <figcaption>
      <strong>{label}</strong>
      {(isNamed ? series : []).map(({ name, colour, group }) => (
        <span key={name}>
          <span class={`swatch ${colour}`} aria-hidden="true" />
          {hrefOf === undefined || group === undefined ? (
            <bdi>{name}</bdi>
          ) : (
            <a href={hrefOf(group)}>
              <bdi>{name}</bdi>
            </a>
          )}
        </span>
      ))}
    </figcaption>
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
