/** What a process holds and how long it ran, from Linux alone: its resident memory, that one's peak, and its main thread's time. */
import { readFileSync, writeFileSync } from 'node:fs';

const BYTES_A_KIB = 1024;
/** What `/proc/<pid>/clear_refs` takes for "the peak begins anew". */
const RESET_PEAK = '5';

export function residentBytes(pid: number): number {
  return read(pid, 'VmRSS');
}

/** The most that it held since the last reset. */
export function peakBytes(pid: number): number {
  return read(pid, 'VmHWM');
}

export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, RESET_PEAK);
}

const NS_A_MS = 1e6;

/** How long its main thread, which runs the isolate, has had a processor, in ms: what it waited for one is not in it. */
export function ranMs(pid: number): number {
  const [ranNs] = readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ');
  return Number(ranNs) / NS_A_MS;
}

function read(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const kib = new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(status)?.[1];
  if (kib === undefined) throw new Error(`/proc/${pid}/status has no ${field}`);
  return Number(kib) * BYTES_A_KIB;
}
