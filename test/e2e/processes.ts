/** Finds the workerd processes that this process has started, and reads their memory. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

const PAGE_BYTES = 4096;

/** The ids of the workerd processes below this one. */
export function workerdIds(): number[] {
  const parents = new Map<number, number>();
  const found: number[] = [];
  for (const name of readdirSync('/proc')) {
    const id = Number(name);
    const [, command, parent] = /^\d+ \((.*)\) \S (\d+) /s.exec(read(`/proc/${name}/stat`)) ?? [];
    if (!Number.isInteger(id) || parent === undefined) continue;
    parents.set(id, Number(parent));
    if (command === 'workerd') found.push(id);
  }
  return found.filter((id) => isBelow(id, parents));
}

/** The resident memory of these processes, in bytes. */
export function residentBytes(ids: readonly number[]): number {
  return ids.reduce((sum, id) => sum + Number(read(`/proc/${id}/statm`).split(' ')[1] ?? 0) * PAGE_BYTES, 0);
}

function isBelow(id: number, parents: ReadonlyMap<number, number>): boolean {
  for (let at: number | undefined = id; at !== undefined; at = parents.get(at))
    if (at === process.pid) return true;
  return false;
}

/** `""` for a process that has exited, and for other entries. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
