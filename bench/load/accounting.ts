/** Reads a process's figures from the operating system: the CPU time of its threads, and its resident memory. */
import { readdirSync, readFileSync } from 'node:fs';

/** Linux reports process times in hundredths of a second, independent of the kernel's clock. */
const TICK_MS = 10;
const PAGE_KIB = 4;

/**
 * CPU time of a process so far, user and system, in ms. The scheduler's sums per thread have ns resolution. If the
 * kernel has none, this is utime + stime of /proc/<pid>/stat, in ticks of 10 ms.
 */
export function cpuMs(pid: number): number {
  return scheduledMs(pid) ?? tickedMs(pid);
}

function scheduledMs(pid: number): number | undefined {
  try {
    let nanoseconds = 0;
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]);
    }
    return nanoseconds / 1e6;
  } catch {
    return undefined;
  }
}

function tickedMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // After the command, which may contain spaces, utime and stime are the 12th and 13th fields.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** Resident memory, in KiB. */
export function residentKib(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE_KIB;
}
