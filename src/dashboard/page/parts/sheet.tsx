/** A modal dialog: the browser keeps the focus in it and closes it on Escape. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface SheetProps {
  readonly title: ComponentChildren;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** At the side and as high as the window, for what is long. */
  readonly isTall?: boolean;
}

export function Sheet({ title, onClose, children, isTall = false }: SheetProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const isGone = useRef(false);
  useEffect(() => {
    const { current } = dialog;
    current?.showModal();
    // Whoever takes the sheet away needs no word about it.
    return () => {
      isGone.current = true;
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={isTall ? 'tall' : ''}
      aria-labelledby="sheet-title"
      onClose={() => isGone.current || onClose()}
    >
      <header>
        <h2 id="sheet-title">{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}
