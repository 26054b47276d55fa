/** A chart of stacked bars over time. The pointer or the arrow keys select a bar, whose values are written below. */
import { useState } from 'preact/hooks';
import { stepLabel, stepTitle } from '../format/times.ts';
import { useWidth } from './use-width.ts';

export interface Series {
  readonly name: string;
  /** A class of the style sheet. */
  readonly colour: string;
  /** One for each step. */
  readonly values: readonly number[];
}

interface StackProps {
  readonly label: string;
  readonly steps: readonly string[];
  /** From bottom to top. */
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
}

const HEIGHT = 200;
const TOP = 8;
const BOTTOM = 20;
const PLOT = HEIGHT - TOP - BOTTOM;
const LABEL_PX = 64;
const CHAR_PX = 6.6;

export function Stack({ label, steps, series, format }: StackProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [at, setAt] = useState<number | null>(null);
  const sums = steps.map((_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0));
  const top = niceTop(Math.max(...sums, 0));
  const ticks = top === 0 ? [0] : [0, top / 2, top];
  const left = Math.ceil(Math.max(...ticks.map((tick) => format(tick).length)) * CHAR_PX) + 8;
  const slot = Math.max(0, width - left) / steps.length;
  const gap = Math.min(6, slot * 0.2);
  const every = Math.ceil(LABEL_PX / slot);
  const x = (i: number) => left + i * slot;
  const y = (value: number) => TOP + PLOT * (1 - value / (top || 1));
  const go = (to: number) => setAt(Math.max(0, Math.min(steps.length - 1, to)));
  return (
    <figure class="chart">
      <div
        ref={box}
        role="group"
        tabIndex={0}
        aria-label={`${label}: the arrow keys read each bar`}
        onKeyDown={({ key }) => {
          if (key === 'ArrowRight') go((at ?? -1) + 1);
          if (key === 'ArrowLeft') go((at ?? steps.length) - 1);
        }}
        onPointerMove={({ clientX, currentTarget }) =>
          go(Math.floor((clientX - currentTarget.getBoundingClientRect().left - left) / slot))
        }
        onPointerLeave={() => setAt(null)}
        onBlur={() => setAt(null)}
      >
        <svg width={width} height={HEIGHT} aria-hidden="true">
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
                {series.map(({ colour, values }, s) => {
                  const value = values[i] ?? 0;
                  below += value;
                  return (
                    value > 0 && (
                      <rect
                        key={s}
                        class={colour}
                        x={x(i) + gap / 2}
                        width={slot - gap}
                        y={y(below)}
                        height={Math.max(0.5, y(below - value) - y(below))}
                      />
                    )
                  );
                })}
                {i % every === 0 && x(i) + LABEL_PX / 2 < width && (
                  <text x={x(i)} y={HEIGHT - 4}>
                    {stepLabel(step)}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      </div>
      <figcaption aria-live="polite">
        {at === null ? (
          label
        ) : (
          <>
            {stepTitle(steps[at] ?? '')} – {format(sums[at] ?? 0)}
            {series.map(
              ({ name, values }) =>
                values[at] && <SeriesValue key={name} name={name} value={format(values[at])} />,
            )}
          </>
        )}
      </figcaption>
    </figure>
  );
}

function SeriesValue({ name, value }: { name: string; value: string }) {
  return (
    <>
      {', '}
      <bdi class="name">{name}</bdi> {value}
    </>
  );
}

/** The next larger round number whose half is also round. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return value && ([1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value) ?? 10) * power;
}
