/** The result of a run: scores by area for the terminal and for documents, JSON, and the details of one case. */
import { table } from '../simulator/terminal.ts';
import { AREAS, type Area, areaOf, type Case, isWeirsOwn } from './case.ts';
import { FAULTS } from './judge.ts';
import type { Play } from './play.ts';
import type { Result } from './suite.ts';

/** What `--json` writes. */
export interface Report {
  readonly gateway: string;
  readonly version: string;
  readonly date: string;
  readonly command: string;
  readonly node: string;
  readonly results: readonly Result[];
}

export interface Score {
  readonly area: Area;
  readonly passed: number;
  readonly played: number;
}

export function scoresOf(results: readonly Result[]): Score[] {
  return areas().map((area) => {
    const played = results.filter((one) => one.area === area && one.verdict !== 'none');
    return {
      area,
      passed: played.filter(({ verdict }) => verdict === 'passed').length,
      played: played.length,
    };
  });
}

export function areas(): Area[] {
  return Object.keys(AREAS).filter((area): area is Area => area in AREAS);
}

/** `–` if nothing was played. */
export function scoreText({ passed, played }: Score): string {
  return played === 0 ? '–' : `${passed} of ${played}`;
}

export function figureText({ verdict, value, unit }: Result): string {
  if (verdict === 'none') return '–';
  return value === undefined ? verdict : `${value} ${unit ?? ''}`.trim();
}

/** The table that a run ends with. */
export function summary(report: Report, cases: readonly Case[]): string[] {
  const rows = scoresOf(report.results).map((score) => [
    `${AREAS[score.area]}${score.area === 'contract' ? ' †' : ''}`,
    scoreText(score),
    report.results
      .filter((one) => one.area === score.area && one.value !== undefined)
      .map((one) => `${one.id.split('/')[1]} ${figureText(one)}`)
      .join(', '),
  ]);
  const failed = report.results.filter(({ verdict }) => verdict === 'failed');
  const lines = [
    `${report.gateway} ${report.version}`,
    ...table(['area', 'passed', 'measured'], rows),
    "  –: cannot be measured from outside, or not offered. †: only Weir's contract asks for it.",
    '',
  ];
  if (failed.length === 0) return [...lines, '  No case failed.'];
  const titles = new Map(cases.map((one) => [one.id as string, one.title]));
  for (const result of failed) {
    lines.push(`  ✗ ${result.id}: ${titles.get(result.id) ?? ''}`);
    for (const fault of result.faults) lines.push(`      ${fault.kind}: ${fault.text}`);
  }
  return [
    ...lines,
    '',
    '  One case again, with what was sent and received: the same command with --case <id>',
  ];
}

/** Replaces what `--docs` writes in a document: the scores, and the cases that Weir fails. */
export function withResults(
  document: string,
  reports: readonly Report[],
  failing: Readonly<Record<string, string>>,
): string {
  return withBlock(withBlock(document, 'scores', scoreTable(reports)), 'failing', failingTable(failing));
}

export function failingTable(failing: Readonly<Record<string, string>>): string[] {
  const rows = Object.entries(failing).map(([id, reason]) => `| \`${id}\` | ${reason} |`);
  return ['', '| case | why |', '| --- | --- |', ...rows, ''];
}

/** Replaces the lines between the two comments of this name. */
function withBlock(document: string, name: string, lines: readonly string[]): string {
  const [begin, end] = [`<!-- ${name}: npm run conformance -- --docs -->`, `<!-- end of ${name} -->`];
  const [before, rest = ''] = document.split(begin);
  const [, after] = rest.split(end);
  if (before === undefined || after === undefined) throw new Error(`The document lacks ${begin} … ${end}`);
  return [`${before}${begin}`, ...lines, `${end}${after}`].join('\n');
}

function scoreTable(reports: readonly Report[]): string[] {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const scores = reports.map(({ results }) => scoresOf(results));
  const lines = areas().map((area, at) =>
    row([
      `${AREAS[area]}${area === 'contract' ? ' †' : ''}`,
      ...scores.map((all) => {
        const score = all[at];
        return score === undefined ? '–' : scoreText(score);
      }),
    ]),
  );
  const measured = reports[0]?.results.filter(({ value }) => value !== undefined) ?? [];
  const figures = measured.map(({ id }) =>
    row([`\`${id}\``, ...reports.map(({ results }) => figureOf(results.find((one) => one.id === id)))]),
  );
  return [
    '',
    row(['area', ...reports.map(({ gateway }) => gateway)]),
    row(['---', ...reports.map(() => '---')]),
    ...lines,
    '',
    row(['measured', ...reports.map(({ gateway }) => gateway)]),
    row(['---', ...reports.map(() => '---')]),
    ...figures,
    '',
    row(['gateway', 'version', 'date', 'command']),
    row(['---', '---', '---', '---']),
    ...reports.map(({ gateway, version, date, command, node }) =>
      row([gateway, version, date.slice(0, 10), `\`${command}\` (Node ${node})`]),
    ),
    '',
  ];
}

function figureOf(result: Result | undefined): string {
  return result?.value === undefined ? '–' : figureText(result);
}

/** Why pairs of protocols were not played, each once. */
export function notOffered(results: readonly Result[]): string[] {
  const reasons = results.flatMap(({ verdict, reason }) => (verdict === 'none' ? [reason ?? ''] : []));
  return [...Map.groupBy(reasons, (reason) => reason)].map(
    ([reason, all]) => `${all.length} cases –: ${reason}`,
  );
}

const SHOWN = 4000;

/** What a person needs in order to understand one case. */
export function details(one: Case, result: Result, play: Play | undefined): string[] {
  const served = one.serve.map((step) =>
    typeof step === 'string'
      ? step
      : step instanceof Uint8Array
        ? new TextDecoder().decode(step)
        : `[${JSON.stringify(step)}]\n`,
  );
  const received = Buffer.concat(play?.reading.bytes ?? []).toString();
  return [
    `${one.id}${isWeirsOwn(one) ? " (only Weir's contract asks for it)" : ''}`,
    `  ${one.title}`,
    `  Where it fails: ${one.suffers}`,
    `  Seen at: ${one.thread === null ? 'no public thread found' : threadUrl(one.thread)}`,
    `  Verdict: ${result.verdict}${result.reason === undefined ? '' : ` (${result.reason})`} ${result.value === undefined ? '' : figureText(result)}`,
    ...result.faults.map((fault) => `    ${fault.kind} (${FAULTS[fault.kind]}): ${fault.text}`),
    '',
    `The provider sends (${areaOf(one)}, ${one.upstream}):`,
    served.join('').slice(0, SHOWN),
    `[${one.ends ?? 'end'}]`,
    '',
    `The client receives (${one.client}, status ${play?.reading.status ?? 0}):`,
    received.slice(0, SHOWN),
  ];
}

export function threadUrl(thread: string): string {
  return `https://github.com/${thread.replace('#', '/issues/')}`;
}
