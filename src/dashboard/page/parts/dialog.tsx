/** A modal dialog. The browser keeps the focus in it and closes it on Escape. And the end of a form in one. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: ComponentChildren;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** At the side and as high as the window, for long content. */
  readonly isTall?: boolean;
  /** Neither Escape nor a cross closes it: its content has a button that does. */
  readonly isKept?: boolean;
}

export function Dialog({ title, onClose, children, isTall = false, isKept = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const isRemoved = useRef(false);
  useEffect(() => {
    const { current } = element;
    current?.showModal();
    // A dialog that its parent removes must not call onClose.
    return () => {
      isRemoved.current = true;
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={isTall ? 'tall' : ''}
      aria-labelledby="title"
      onCancel={(event) => isKept && event.preventDefault()}
      onClose={() => {
        if (isRemoved.current) return;
        // Browsers close a dialog on a second Escape, whatever becomes of the first.
        if (isKept) element.current?.showModal();
        else onClose();
      }}
    >
      <header>
        <h2 id="title">{title}</h2>
        {!isKept && (
          <button type="button" class="quiet" aria-label="Close" onClick={() => element.current?.close()}>
            ×
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}

interface FormEndProps {
  /** Why the form was refused; null: it was not. */
  readonly failure: string | null;
  readonly action: string;
  readonly isSending?: boolean;
  /** Absent: the form has no Cancel. */
  readonly onClose?: () => void;
}

/** The end of a form in a dialog: why it was refused, and its buttons. */
export function FormEnd({ failure, action, isSending = false, onClose }: FormEndProps) {
  return (
    <>
      {failure !== null && (
        <p class="problem" role="alert">
          <bdi>{failure}</bdi>
        </p>
      )}
      <footer>
        {onClose && (
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        )}
        <button type="submit" class="primary" disabled={isSending}>
          {action}
        </button>
      </footer>
    </>
  );
}
