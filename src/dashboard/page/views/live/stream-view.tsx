/** One stream of the live view: its figures, its output, and each frame as it arrived. */
import { useState } from 'preact/hooks';
import { Strip } from '../../charts/strip.tsx';
import { bytes, count, milliseconds, money, NONE, rate } from '../../format/numbers.ts';
import { ProblemBox } from '../../parts/problem.tsx';
import { linkTo } from '../../state/route.ts';
import type { Part, Run, SeenFrame } from './run.ts';

interface StreamViewProps {
  readonly run: Run;
  readonly spanMs: number;
}

const PHASES: Readonly<Record<Run['phase'], string>> = {
  waiting: 'Waiting for the first byte …',
  streaming: 'Streaming …',
  done: 'Finished',
  stopped: 'Stopped: the upstream was cancelled',
  failed: 'Failed',
};

export function StreamView({ run, spanMs }: StreamViewProps) {
  const { usage, firstAt, endedAt, phase, finish } = run;
  const streamedMs = firstAt === null ? 0 : (endedAt ?? run.lastAt) - firstAt;
  const completion = usage?.completion_tokens;
  const perSecond = completion !== undefined && streamedMs > 0 ? (completion * 1000) / streamedMs : null;
  const { cached_tokens: cached, cache_write_tokens: written } = usage?.prompt_tokens_details ?? {};
  const cache = [cached && `${count(cached)} cached`, written && `${count(written)} written to the cache`];
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens;
  return (
    <section class="stream-view" aria-label={run.model} aria-busy={run.isRunning}>
      <header>
        <h2>
          <bdi>{run.model}</bdi>
        </h2>
        <p class={phase === 'failed' ? 'phase failed' : 'phase'} role="status">
          {PHASES[phase]}
          {finish !== null && phase === 'done' && ` (${finish})`}
        </p>
      </header>
      <dl class="figures small">
        <Figure name="First token" value={milliseconds(firstAt)} />
        <Figure name="Tokens a second" value={rate(perSecond)} />
        <Figure
          name="Tokens in"
          value={count(usage?.prompt_tokens)}
          note={cache.filter(Boolean).join(', ')}
        />
        <Figure
          name="Tokens out"
          value={count(completion)}
          note={reasoning ? `${count(reasoning)} reasoning` : ''}
        />
        <Figure name="Cost" value={usage?.cost === undefined ? NONE : money(usage.cost, 'USD')} />
        <Figure name="Time" value={milliseconds(endedAt ?? run.lastAt)} />
      </dl>
      {run.problem !== null && <ProblemBox problem={run.problem} />}
      <Answer run={run} />
      <Strip frames={run.frames} spanMs={spanMs} firstAt={firstAt} />
      <p class="hint">Each frame when it arrived, taller if it is larger; grey until the first output.</p>
      <Frames run={run} />
      <p class="hint foot">
        {run.isCut && 'The page keeps the first part of so long a stream. '}
        {run.requestId !== null && run.hasRecord && !run.isRunning && (
          <a href={linkTo('requests', { id: run.requestId })}>Open its record</a>
        )}
      </p>
    </section>
  );
}

function Figure({ name, value, note }: { name: string; value: string; note?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <span class="value">{value}</span>
        {note && <span class="hint"> {note}</span>}
      </dd>
    </div>
  );
}

function Answer({ run }: { run: Run }) {
  return (
    <section class="tail" aria-label={`Answer of ${run.model}`} tabIndex={0}>
      <div>
        {run.parts.map((part, i) => (
          <PartOf key={i} part={part} />
        ))}
      </div>
    </section>
  );
}

function PartOf({ part }: { part: Part }) {
  return (
    <div class={`part ${part.kind}`}>
      <h3>
        {part.kind === 'tool' && 'Tool call '}
        {part.kind === 'error' && 'Error '}
        <bdi>{part.title}</bdi>
      </h3>
      <p>
        <bdi>{part.text}</bdi>
      </p>
    </div>
  );
}

const RENDERED = 200;

function Frames({ run }: { run: Run }) {
  const [isAll, setAll] = useState(false);
  const from = isAll ? 0 : Math.max(0, run.frames.length - RENDERED);
  return (
    <details class="frames" open>
      <summary>
        {count(run.frameCount)} frames, {bytes(run.bytes)}
      </summary>
      {from > 0 && (
        <button type="button" class="link" onClick={() => setAll(true)}>
          Show the {count(from)} before
        </button>
      )}
      <section class="tail" aria-label={`Frames of ${run.model}`} tabIndex={0}>
        <div>
          {run.frames.slice(from).map((frame, i) => (
            <FrameLine key={from + i} frame={frame} />
          ))}
        </div>
      </section>
    </details>
  );
}

/** Hides the leading fields, which are the same in every frame of a stream. */
function withoutPrefix(text: string): string {
  return text.replace(/^.*?(?="choices":)/, '… ');
}

function FrameLine({ frame }: { frame: SeenFrame }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="frame">
      <span class="num">{milliseconds(Math.round(frame.at))}</span>
      <span class="num">{count(frame.bytes)} B</span>
      {frame.isJson ? (
        <button
          type="button"
          class={`code mark ${frame.kind} ${isOpen ? 'open' : ''}`}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? JSON.stringify(JSON.parse(frame.text), null, 2) : withoutPrefix(frame.text)}
        </button>
      ) : (
        <span class={`code mark ${frame.kind}`}>{frame.text}</span>
      )}
    </div>
  );
}
