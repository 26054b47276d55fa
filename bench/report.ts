/** Formats the samples: a table for each section, or one JSON document. */
import { cpus, release } from 'node:os';
import type { Bundle } from './build.ts';
import { BASELINE, type Row, type SectionName } from './rows.ts';
import type { Samples } from './samples.ts';
import { fastShare, TEXT_STREAMS } from './share.ts';
import { STREAM_NAMES } from './streams.ts';

type Bundles = ReadonlyMap<Row, Bundle>;

interface Column {
  readonly name: string;
  readonly cell: (row: string) => string;
}

export function tables(samples: Samples, bundles: Bundles): string[] {
  return [
    machine(),
    ...bulkTables(samples, bundles),
    ...samples.points('paced').flatMap((point) => pacedTable(samples, bundles, point)),
    ...coldTable(samples, bundles),
    ...requestsTable(samples, bundles),
    ...promptsTable(samples, bundles),
    ...shareLines(),
  ];
}

function machine(): string {
  const [cpu] = cpus();
  return `${cpus().length} x ${cpu?.model.trim()}, Linux ${release()}, Node ${process.version}; medians, multiples of ${BASELINE}\n`;
}

function bulkTables(samples: Samples, bundles: Bundles): string[] {
  const points = samples.points('bulk');
  return STREAM_NAMES.flatMap((stream) => {
    const columns = points
      .filter((point) => point.startsWith(`${stream} `))
      .map((point) => ({
        name: sizeName(point.split(' ')[1] ?? ''),
        cell: (row: string) => {
          if (samples.problem('bulk', row, point) !== null) return 'invalid';
          const own = samples.median('bulk', row, point, 'cpuUs');
          return `${number(own, 2)} ${times(samples.ratio('bulk', row, point, 'cpuUs'))}`;
        },
      }));
    return table(
      `Bulk, ${stream}: µs of CPU per event, by size of the upstream's chunks`,
      'bulk',
      bundles,
      columns,
    );
  });
}

function sizeName(size: string): string {
  const bytes = Number(size);
  if (Number.isNaN(bytes)) return size;
  return bytes < 1024 ? `${bytes} B` : `${bytes / 1024} KiB`;
}

function pacedTable(samples: Samples, bundles: Bundles, point: string): string[] {
  const figure =
    (name: string, digits: number, scale = 1) =>
    (row: string) =>
      number(samples.median('paced', row, point, name) * scale, digits);
  const added = (name: string) => (row: string) => number(samples.difference('paced', row, point, name), 2);
  // Before and at the start of the first round, and during and after the last round, to show growth between rounds.
  const mebibytes = (name: string, round: number) => (row: string) =>
    number((samples.valid('paced', row, point).at(round)?.figures[name] ?? Number.NaN) / 1024, 0);
  const streams = streamsIn(point);
  const columns: Column[] = [
    { name: 'µs per frame', cell: figure('cpuUs', 1) },
    { name: 'x pass', cell: (row) => times(samples.ratio('paced', row, point, 'cpuUs')) },
    { name: 'share of core', cell: (row) => `${figure('load', 0, 100)(row)}%` },
    { name: 'generator', cell: (row) => `${figure('generatorLoad', 0, 100)(row)}%` },
    { name: 'pace kept', cell: (row) => `${figure('pace', 0, 100)(row)}%` },
    { name: '+p50 ms', cell: added('p50') },
    { name: '+p99 ms', cell: added('p99') },
    { name: 'p50 ms', cell: figure('p50', 2) },
    { name: '1st byte', cell: figure('firstByteP50', 2) },
    { name: 'p99', cell: figure('firstByteP99', 1) },
    { name: 'MiB start', cell: mebibytes('startKib', 0) },
    { name: 'early', cell: mebibytes('earlyKib', 0) },
    { name: 'late', cell: mebibytes('lateKib', -1) },
    { name: 'peak', cell: mebibytes('peakKib', -1) },
    { name: 'after', cell: mebibytes('afterKib', -1) },
    { name: 'KiB per stream', cell: (row) => number(kibPerStream(samples, row, point, streams), 0) },
  ];
  return table(`Paced, ${point} (added ms against ${BASELINE})`, 'paced', bundles, columns);
}

/** `deepseek 200 x 25/s`. */
export function streamsIn(point: string): number {
  return Number(point.split(' ')[1]);
}

/** The growth of a fresh process in the first round, per stream. */
export function kibPerStream(samples: Samples, row: string, point: string, streams: number): number {
  const [first] = samples.valid('paced', row, point);
  return ((first?.figures.peakKib ?? Number.NaN) - (first?.figures.startKib ?? Number.NaN)) / streams;
}

function coldTable(samples: Samples, bundles: Bundles): string[] {
  const point = 'first stream';
  if (!samples.points('cold').includes(point)) return [];
  const figure = (name: string) => (row: string) => number(samples.median('cold', row, point, name), 1);
  const above = (name: string) => (row: string) => number(samples.difference('cold', row, point, name), 1);
  const sizes = new Map([...bundles].map(([{ name }, bundled]) => [name, bundled]));
  const kib = (bytes = Number.NaN) => number(bytes / 1024, 1);
  return table('Cold: ms of CPU of the first stream of a fresh isolate, at 500 frames/s', 'cold', bundles, [
    { name: 'to 1st frame', cell: figure('cpu1Ms') },
    { name: '100 frames', cell: figure('cpu100Ms') },
    { name: 'above pass', cell: above('cpu100Ms') },
    { name: '2,000 frames', cell: figure('cpu2000Ms') },
    { name: 'above pass', cell: above('cpu2000Ms') },
    { name: '1st byte ms', cell: figure('firstByteMs') },
    { name: 'workerd up ms', cell: figure('startedInMs') },
    { name: 'its CPU ms', cell: figure('startMs') },
    {
      name: 'start-up active ms',
      cell: (row) => number(samples.median('cold', row, 'startup', 'activeMs'), 1),
    },
    { name: 'KiB', cell: (row) => kib(sizes.get(row)?.bytes) },
    { name: 'gzip', cell: (row) => kib(sizes.get(row)?.gzipBytes) },
  ]);
}

function requestsTable(samples: Samples, bundles: Bundles): string[] {
  const columns = samples.points('requests').flatMap((point) => [
    {
      name: point,
      cell: (row: string) => {
        if (samples.problem('requests', row, point) !== null) return 'invalid';
        const own = samples.median('requests', row, point, 'cpuUs');
        return `${number(own, 0)} ${times(samples.ratio('requests', row, point, 'cpuUs'))}`;
      },
    },
    {
      name: '1st byte ms',
      cell: (row: string) => number(samples.median('requests', row, point, 'firstByteMs'), 2),
    },
    {
      name: 'stored bytes',
      cell: (row: string) => number(samples.median('requests', row, point, 'recordBytes'), 0),
    },
  ]);
  const title = 'Requests, one after the other: µs of CPU for a response of one frame, and its first byte';
  return table(title, 'requests', bundles, columns);
}

function promptsTable(samples: Samples, bundles: Bundles): string[] {
  const columns = samples.points('prompts').map((point) => ({
    name: point,
    cell: (row: string) => {
      if (samples.problem('prompts', row, point) !== null) return 'invalid';
      return number(samples.median('prompts', row, point, 'cpuUs'), 0);
    },
  }));
  return table(
    'Prompts: µs of CPU for a request that is not streamed, by its size',
    'prompts',
    bundles,
    columns,
  );
}

/** Counted in this process, independent of the measured sections. */
function shareLines(): string[] {
  const lines = TEXT_STREAMS.map(
    ([name, shape]) => `${name.padEnd(21)}  ${(fastShare(name, shape) * 100).toFixed(1)}%`,
  );
  return ['Text frames that take the fast path', ...lines, ''];
}

function table(title: string, section: SectionName, bundles: Bundles, columns: readonly Column[]): string[] {
  const rows = [...bundles.keys()].filter(({ sections }) => sections.includes(section));
  const lines = [
    ['', ...columns.map(({ name }) => name)],
    ...rows.map(({ name }) => [name, ...columns.map(({ cell }) => cell(name))]),
  ];
  if (
    columns.length === 0 ||
    lines.slice(1).every(([, ...cells]) => cells.every((cell) => /^[-%]+$/.test(cell)))
  ) {
    return [];
  }
  const widths = (lines[0] ?? []).map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  const padded = lines.map((line) =>
    line
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  '),
  );
  return [title, ...padded, ''];
}

function number(value: number, digits: number): string {
  return Number.isNaN(value) ? '-' : value.toFixed(digits);
}

function times(ratio: number): string {
  return Number.isNaN(ratio) ? '-' : `${ratio.toFixed(ratio < 10 ? 2 : 0)}x`.padStart(6);
}

export function jsonReport(
  samples: Samples,
  bundles: Bundles,
  goals: readonly string[],
  notes: readonly string[],
): string {
  const rows = [...bundles].map(([{ name, what }, { bytes, gzipBytes }]) => ({
    name,
    what,
    bytes,
    gzipBytes,
  }));
  const measured = rows.flatMap(({ name: row }) =>
    [...new Set(samples.all.filter((sample) => sample.row === row).map(({ section }) => section))].flatMap(
      (section) =>
        samples
          .points(section)
          .filter((point) => samples.of(section, row, point).length > 0)
          .map((point) => ({ section, point, row, ...summaryOf(samples, section, row, point) })),
    ),
  );
  const shares = Object.fromEntries(TEXT_STREAMS.map(([name, shape]) => [name, fastShare(name, shape)]));
  return JSON.stringify(
    { machine: machine().trim(), rows, measured, fastShare: shares, goals, notes, samples: samples.all },
    null,
    1,
  );
}

function summaryOf(samples: Samples, section: SectionName, row: string, point: string) {
  const names = [...new Set(samples.of(section, row, point).flatMap(({ figures }) => Object.keys(figures)))];
  const medians = names.map((name) => [name, samples.median(section, row, point, name)] as const);
  const ratios = names.map((name) => [name, samples.ratio(section, row, point, name)] as const);
  return {
    median: Object.fromEntries(medians),
    ratioToPass: Object.fromEntries(ratios),
    problem: samples.problem(section, row, point),
  };
}
