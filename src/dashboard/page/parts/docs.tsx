/** Links to the documents, which the deployment has itself. */
import type { ComponentChildren } from 'preact';
import { DOCS_URL } from '../api/fetch-api.ts';

interface DocsLinkProps {
  /** A page of the documents, or a heading of one: `keys/audit`. */
  readonly to: string;
  /** Its name for screen readers, where its text does not say what it is about. */
  readonly about?: string;
  readonly children: ComponentChildren;
}

/** Opens in a tab of its own, so that the view stays. Nothing where the host has no documents. */
export function DocsLink({ to, about, children }: DocsLinkProps) {
  if (DOCS_URL === null) return null;
  return (
    <a href={`${DOCS_URL}#${to}`} target="_blank" rel="noopener" aria-label={about}>
      {children}
    </a>
  );
}
