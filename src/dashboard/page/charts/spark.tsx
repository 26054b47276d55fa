/** A small line without labels, beside the number that it leads to. */
import { pathOf } from './stack.tsx';

const HEIGHT = 20;

export function Spark({ values }: { values: readonly (number | null)[] }) {
  const top = Math.max(0, ...values.map(Number));
  if (values.length < 2) return null;
  const y = (value: number) => 1 + (HEIGHT - 2) * (1 - value / (top || 1));
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${values.length - 1} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path d={pathOf(values, (i) => i, y)} />
    </svg>
  );
}
