/** Reads figures of a process from Linux: resident memory, its peak, and the CPU time of the main thread. */
import { readFileSync, writeFileSync } from 'node:fs';

const BYTES_A_KIB = 1024;
/** The value that resets the peak in `/proc/<pid>/clear_refs`. */
const RESET_PEAK = '5';

export function residentBytes(pid: number): number {
  return read(pid, 'VmRSS');
}

/** The peak since the last reset. */
export function peakBytes(pid: number): number {
  return read(pid, 'VmHWM');
}

export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, RESET_PEAK);
}

const NS_A_MS = 1e6;

/** The CPU time of the main thread, which runs the isolate, in ms, without waits for a processor. */
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
