/** A list of what is known: a name and what it is, each; what is not there is left out. */
import type { ComponentChildren } from 'preact';

type Fact = readonly [name: string, value: ComponentChildren];

export function Facts({ facts }: { facts: readonly (Fact | false | null | undefined | 0)[] }) {
  return (
    <dl class="facts">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
