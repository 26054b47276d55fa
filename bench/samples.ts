/** The measurements of all sections, with medians and ratios. */
import type { JobResult } from './jobs.ts';
import { BASELINE, type SectionName } from './rows.ts';

export interface Sample extends JobResult {
  readonly section: SectionName;
  readonly row: string;
  /** The measured case of the section: a stream and a chunk size, a number of streams and their pace, … */
  readonly point: string;
  readonly round: number;
}

export class Samples {
  readonly all: Sample[] = [];

  add(sample: Sample): void {
    this.all.push(sample);
  }

  /** The first invalid output of a row, at one point or at all points; null if there is none. */
  problem(section: SectionName, row: string, point?: string): string | null {
    const invalid = this.of(section, row, point).find(({ problem }) => problem !== null);
    return invalid?.problem ?? null;
  }

  points(section: SectionName): string[] {
    return [...new Set(this.all.filter((sample) => sample.section === section).map(({ point }) => point))];
  }

  /** NaN if it was not measured. */
  median(section: SectionName, row: string, point: string, figure: string): number {
    return median(this.valid(section, row, point).map(({ figures }) => figures[figure] ?? Number.NaN));
  }

  /** The median over the rounds of a row's ratio to another in the same round. */
  ratio(section: SectionName, row: string, point: string, figure: string, against = BASELINE): number {
    return this.#paired(section, row, point, figure, against, (own, other) => own / other);
  }

  difference(section: SectionName, row: string, point: string, figure: string, against = BASELINE): number {
    return this.#paired(section, row, point, figure, against, (own, other) => own - other);
  }

  #paired(
    section: SectionName,
    row: string,
    point: string,
    figure: string,
    against: string,
    combine: (own: number, other: number) => number,
  ): number {
    const others = new Map(this.valid(section, against, point).map((sample) => [sample.round, sample]));
    return median(
      this.valid(section, row, point).flatMap(({ round, figures }) => {
        const own = figures[figure];
        const other = others.get(round)?.figures[figure];
        return own === undefined || other === undefined ? [] : [combine(own, other)];
      }),
    );
  }

  valid(section: SectionName, row: string, point: string): Sample[] {
    return this.of(section, row, point).filter(({ problem }) => problem === null);
  }

  of(section: SectionName, row: string, point?: string): Sample[] {
    return this.all.filter(
      (sample) =>
        sample.section === section && sample.row === row && (point === undefined || sample.point === point),
    );
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}
