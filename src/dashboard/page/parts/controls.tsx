/** Small controls that several views share: range picker, filter chips, copy button and meter. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { stepTitle } from '../format/times.ts';
import { dayOf, zoneName } from '../format/zone.ts';
import { GROUP_LABELS, TEXT_FILTERS, valueLabel } from '../state/groups.ts';
import { daysOf, RANGES, type Range } from '../state/range.ts';
import { goTo, linkTo, type Params, pick, type View } from '../state/route.ts';

interface RangePickerProps {
  readonly view: View;
  readonly params: Params;
  readonly range: Range;
}

export function RangePicker({ view, params, range }: RangePickerProps) {
  const days = daysOf(params, range);
  const field = (name: 'from' | 'to', label: string) => (
    <input
      type="date"
      aria-label={`${label} day (${zoneName()})`}
      aria-invalid={range.problem !== null}
      max={dayOf(Date.now())}
      value={days[name]}
      onChange={(event) =>
        goTo(view, params, { ...days, [name]: event.currentTarget.value, range: undefined, hour: undefined })
      }
    />
  );
  return (
    <div class="range">
      <div class="range" role="group" aria-label="Range">
        {RANGES.map(({ name, label }) => (
          <a
            key={name}
            href={linkTo(view, params, { range: name, from: undefined, to: undefined, hour: undefined })}
            aria-current={range.name === name ? 'true' : undefined}
          >
            {label}
          </a>
        ))}
      </div>
      <span class="range">
        {field('from', 'From')}
        <span aria-hidden="true">–</span>
        {field('to', 'To')}
        <span class="hint">{zoneName()}</span>
      </span>
    </div>
  );
}

interface ChipsProps {
  readonly view: View;
  readonly params: Params;
  readonly names: readonly string[];
  readonly nameOf: (id: string) => string;
}

/** The active filters of a view. Each can be removed. */
export function Chips({ view, params, names, nameOf }: ChipsProps) {
  const set = Object.keys(pick(params, [...names, 'hour']));
  if (set.length === 0) return null;
  return (
    <ul class="chips" aria-label="Filters">
      {set.map((name) => {
        const value = params[name] ?? '';
        const shown = name === 'hour' ? stepTitle(value) : valueLabel(name, value, nameOf);
        return (
          <li key={name}>
            <span class="hint">{name}</span> <bdi>{shown}</bdi>
            <a
              href={linkTo(view, params, { [name]: undefined })}
              aria-label={`Remove filter ${name} ${shown}`}
            >
              ×
            </a>
          </li>
        );
      })}
    </ul>
  );
}

/** Filters that a narrow screen shows on demand, so that it shows the content first. */
export function Folded({ children }: { children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="narrow" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filters
      </button>
      <div class={isOpen ? 'folded open' : 'folded'}>{children}</div>
    </>
  );
}

const MAX_OPTIONS = 200;

interface AddFilterProps {
  readonly view: View;
  readonly params: Params;
  /** Values on screen, to choose from. */
  readonly valuesOf: (name: string) => readonly string[];
}

/** Adds a filter by the exact value of a name. */
export function AddFilter({ view, params, valuesOf }: AddFilterProps) {
  const [name, setName] = useState('user');
  const [text, setText] = useState('');
  const values = [...new Set(valuesOf(name))].filter(Boolean).sort();
  return (
    <span class="inline">
      <label class="inline">
        Filter{' '}
        <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
          {TEXT_FILTERS.map((known) => (
            <option key={known} value={known}>
              {GROUP_LABELS[known]}
            </option>
          ))}
        </select>
      </label>
      <input
        aria-label={`Filter by ${name}`}
        list="values"
        size={14}
        placeholder={name === 'tag' ? 'team:search' : 'the whole name'}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={(event) => {
          const value = event.currentTarget.value.trim();
          setText('');
          if (value !== '') goTo(view, params, { [name]: value });
        }}
      />
      <datalist id="values">
        {values.slice(0, MAX_OPTIONS).map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
    </span>
  );
}

interface CopyButtonProps {
  readonly text: string;
  readonly label?: string;
  /** Distinguishes the buttons of a view for screen readers. */
  readonly what?: string;
}

export function CopyButton({ text, label = 'Copy', what }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  return (
    <button
      type="button"
      aria-label={what && `${isCopied ? 'Copied' : label} ${what}`}
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
    >
      {isCopied ? 'Copied' : label}
    </button>
  );
}

const REFRESH_MS = 15_000;

interface RefreshProps {
  readonly view: View;
  readonly params: Params;
  readonly onRefresh: () => void;
  /** The switch is on unless the address turns it off. */
  readonly isUsual?: boolean;
}

/** A button that loads again, and a switch that does so every few seconds while the page is visible. */
export function Refresh({ view, params, onRefresh, isUsual = false }: RefreshProps) {
  const isLive = isUsual ? params.refresh !== 'off' : params.refresh === 'on';
  useEffect(() => {
    if (!isLive) return;
    const timer = setInterval(() => document.hidden || onRefresh(), REFRESH_MS);
    return () => clearInterval(timer);
  });
  return (
    <span class="range">
      <button type="button" onClick={onRefresh}>
        Refresh
      </button>
      <label class="inline check">
        <input
          type="checkbox"
          checked={isLive}
          onChange={() => {
            const other = isUsual ? 'off' : 'on';
            goTo(view, params, { refresh: isLive === isUsual ? other : undefined });
          }}
        />
        every {REFRESH_MS / 1000} s
      </label>
    </span>
  );
}

/** How much of a limit is used. `reserved` is drawn behind `spent`. */
export function Meter({ label, spent, reserved = 0, limit }: MeterProps) {
  const part = (value: number) => (limit <= 0 ? 100 : Math.min(100, Math.max(0, (value / limit) * 100)));
  const isOver = spent >= limit;
  return (
    <div
      class={isOver ? 'meter over' : 'meter'}
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={limit}
      aria-valuenow={Math.min(spent, limit)}
    >
      <svg width="100%" height="6" aria-hidden="true">
        <rect class="track" width="100%" height="6" />
        <rect class="reserved" width={`${part(spent + reserved)}%`} height="6" />
        <rect class="spent" width={`${part(spent)}%`} height="6" />
      </svg>
    </div>
  );
}

interface MeterProps {
  readonly label: string;
  readonly spent: number;
  readonly reserved?: number;
  readonly limit: number;
}
