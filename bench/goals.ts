/** Compares the figures with the goals of docs/performance.md. A missed goal is reported and is no failure: times depend on the machine. */
import type { Bundle } from './build.ts';
import { kibPerStream, streamsIn } from './report.ts';
import { FLOOR, type Row } from './rows.ts';
import type { Samples } from './samples.ts';

/** The identity row with the same stream type as Weir. */
const CARRIER = 'identity-byob';
const WEIR = 'weir';
/** Weir, called by clients of other protocols. */
const PROTOCOLS = ['weir-messages', 'weir-responses', 'weir-gemini'];
const KIB = 1024;
/** The minimum share of the requested frames per second. */
const KEPT_PACE = 0.97;

interface Goal {
  readonly what: string;
  readonly value: number;
  readonly atMost: number;
}

export function goalLines(samples: Samples, bundles: ReadonlyMap<Row, Bundle>): string[] {
  const goals = [
    ...bulkGoals(samples),
    ...pacedGoals(samples),
    ...coldGoals(samples, bundles),
    ...requestGoals(samples),
    ...promptGoals(samples),
  ];
  const lines = goals
    .filter(({ value }) => !Number.isNaN(value))
    .map(({ what, value, atMost }) => {
      const verdict = value <= atMost ? 'met   ' : 'MISSED';
      return `${verdict} ${what}: ${value.toFixed(2)} (at most ${atMost})`;
    });
  return lines.length === 0 ? [] : ['Goals', ...lines, ''];
}

function bulkGoals(samples: Samples): Goal[] {
  const texts = ['deepseek', 'mistral', 'xerotier', 'reasoning', 'anthropic', 'gemini'].flatMap((stream) => {
    const point = `${stream} 16384`;
    const against = (row: string) => samples.ratio('bulk', WEIR, point, 'cpuUs', row);
    return [
      { what: `bulk ${point}, x pass`, value: against('pass'), atMost: 4 },
      {
        what: `bulk ${point}, x ${CARRIER}`,
        value: against(CARRIER),
        atMost: stream === 'anthropic' || stream === 'gemini' ? 1.9 : 1.4,
      },
      { what: `bulk ${point}, x portkey-deepseek`, value: against('portkey-deepseek'), atMost: 0.05 },
    ];
  });
  const converse = {
    what: `bulk converse 16384, x ${CARRIER}`,
    value: samples.ratio('bulk', WEIR, 'converse 16384', 'cpuUs', CARRIER),
    atMost: 2.5,
  };
  const tools = [
    converse,
    {
      what: `bulk tools 16384, x ${CARRIER}`,
      value: samples.ratio('bulk', WEIR, 'tools 16384', 'cpuUs', CARRIER),
      atMost: 3.6,
    },
    ...['tools 16384', 'tools frame'].map((point) => ({
      what: `bulk ${point}, x eventsource-parser`,
      value: samples.ratio('bulk', WEIR, point, 'cpuUs', 'eventsource-parser'),
      atMost: 1,
    })),
  ];
  const points = samples.points('bulk').filter((point) => point.endsWith(' 16384'));
  const protocols = PROTOCOLS.flatMap((row) =>
    points.map((point) => ({
      what: `bulk ${point}, ${row} x ${WEIR}`,
      value: samples.ratio('bulk', row, point, 'cpuUs', WEIR),
      atMost: 1.3,
    })),
  );
  const cpu = (row: string, point: string) => samples.median('bulk', row, point, 'cpuUs');
  const throughResponses = {
    what: 'bulk 16384, chat through Responses, x chat',
    value: cpu('weir-through-responses', 'responses 16384') / cpu(WEIR, 'deepseek 16384'),
    atMost: 2,
  };
  return [...texts, ...tools, ...protocols, throughResponses];
}

function pacedGoals(samples: Samples): Goal[] {
  return samples.points('paced').flatMap((point) => {
    const streams = streamsIn(point);
    const ratio = (row: string) => samples.ratio('paced', WEIR, point, 'cpuUs', row);
    const later = (figure: string) => samples.difference('paced', WEIR, point, figure, CARRIER);
    const memory =
      kibPerStream(samples, WEIR, point, streams) - kibPerStream(samples, CARRIER, point, streams);
    const pace = Math.min(...[WEIR, CARRIER].map((row) => samples.median('paced', row, point, 'pace')));
    const note = pace < KEPT_PACE ? ' (the pace was not kept, so this includes queueing)' : '';
    return [
      { what: `paced ${point}, x ${CARRIER}`, value: ratio(CARRIER), atMost: 1.1 },
      ...PROTOCOLS.map((row) => ({
        what: `paced ${point}, ${row} x ${CARRIER}`,
        value: samples.ratio('paced', row, point, 'cpuUs', CARRIER),
        atMost: 1.1,
      })),
      { what: `paced ${point}, x portkey-deepseek`, value: ratio('portkey-deepseek'), atMost: 0.75 },
      { what: `paced ${point}, p50 ms above ${CARRIER}${note}`, value: later('p50'), atMost: 0 },
      { what: `paced ${point}, p99 ms above ${CARRIER}${note}`, value: later('p99'), atMost: 0 },
      { what: `paced ${point}, KiB per stream above ${CARRIER}`, value: memory, atMost: 32 },
    ];
  });
}

function coldGoals(samples: Samples, bundles: ReadonlyMap<Row, Bundle>): Goal[] {
  const bundled = [...bundles].find(([{ name }]) => name === WEIR)?.[1];
  return [
    { what: 'bundle, KiB gzip', value: (bundled?.gzipBytes ?? Number.NaN) / KIB, atMost: 285 },
    {
      what: 'start-up, ms of CPU above pass',
      value: samples.difference('cold', WEIR, 'first stream', 'startMs'),
      atMost: 22,
    },
    {
      what: 'first frame of a fresh isolate, ms of CPU above pass',
      value: samples.difference('cold', WEIR, 'first stream', 'cpu1Ms'),
      atMost: 10,
    },
  ];
}

function promptGoals(samples: Samples): Goal[] {
  const moreMs = (row: string, point: string, than: string) =>
    samples.difference('prompts', row, point, 'cpuUs', than) / 1000;
  return [
    ...['refused 2 KB', 'refused 20 KB', 'finished 20 KB'].map((point) => ({
      what: `${point}, ms of CPU for the provider's sentence`,
      value: moreMs(WEIR, point, 'weir-no-texts'),
      atMost: point.startsWith('refused') ? 0.2 : 0.05,
    })),
    {
      what: `finished 2 KB, signed for AWS: the signature, x ${FLOOR}`,
      value:
        samples.difference('prompts', 'weir-signed', 'finished 2 KB', 'cpuUs', WEIR) /
        samples.median('requests', FLOOR, 'whole', 'cpuUs'),
      atMost: 0.25,
    },
    {
      what: "finished 400 KB, ms of CPU for a session's hashes",
      value: moreMs('weir-session', 'finished 400 KB', WEIR),
      atMost: 1,
    },
  ];
}

function requestGoals(samples: Samples): Goal[] {
  return ['whole', 'streamed'].flatMap((point) => {
    const what = point === 'whole' ? 'non-streaming request' : 'streaming request';
    const times = (row: string, than: string) => samples.ratio('requests', row, point, 'cpuUs', than);
    return [
      { what: `${what}, x ${FLOOR}`, value: times(WEIR, FLOOR), atMost: point === 'whole' ? 1.4 : 1.2 },
      {
        what: `${what}, first byte, ms above ${FLOOR}`,
        value: samples.difference('requests', WEIR, point, 'firstByteMs', FLOOR),
        atMost: 0.2,
      },
      { what: `${what} with a known key, x ${WEIR}`, value: times('weir-keys', WEIR), atMost: 1.1 },
      {
        what: `${what} with every limit, x limits-floor`,
        value: times('weir-limits', 'limits-floor'),
        atMost: 1.5,
      },
      { what: `${what}, x portkey-deepseek`, value: times(WEIR, 'portkey-deepseek'), atMost: 1 },
    ];
  });
}
