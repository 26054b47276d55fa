/** A button that opens a short list of buttons. Escape and a click elsewhere close it; the focus goes back to the button. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

export interface Action {
  readonly label: string;
  /** For screen readers, where the label alone does not say what it acts on. */
  readonly name?: string;
  readonly isDangerous?: boolean;
  readonly act: () => void;
}

interface MenuProps {
  /** What the button is for, where its content does not say it. */
  readonly name?: string;
  readonly actions: readonly Action[];
  /** The button's content. */
  readonly children: ComponentChildren;
}

/** Between the list and the edge of the window. */
const EDGE_PX = 8;

export function Menu({ name, actions, children }: MenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const hide = () => list.current?.hidePopover();
  /** Below the button, or above it where there is no room. The policy of the page forbids style attributes, but not this. */
  const place = () => {
    if (!list.current || !button.current) return;
    const { style, offsetWidth, offsetHeight } = list.current;
    const { top, bottom, right } = button.current.getBoundingClientRect();
    style.left = `${Math.max(EDGE_PX, right - offsetWidth)}px`;
    style.top = `${bottom + offsetHeight < innerHeight ? bottom : Math.max(EDGE_PX, top - offsetHeight)}px`;
  };
  const stop = useRef(() => {});
  const follow = ({ newState }: Pick<ToggleEvent, 'newState'>) => {
    stop.current();
    if (newState !== 'open') return;
    place();
    // It follows its button, which the page and the table may scroll.
    addEventListener('scroll', place, true);
    stop.current = () => removeEventListener('scroll', place, true);
  };
  useEffect(() => () => stop.current(), []);
  return (
    <>
      <button ref={button} type="button" class="quiet" popovertarget={id} aria-label={name}>
        {children}
      </button>
      <div ref={list} id={id} popover="auto" class="menu" role="group" aria-label={name} onToggle={follow}>
        {actions.map(({ label, name: whole, isDangerous, act }) => (
          <button
            key={label}
            type="button"
            class={isDangerous ? 'quiet danger' : 'quiet'}
            aria-label={whole}
            onClick={() => {
              hide();
              act();
            }}
          >
            {label}
          </button>
        ))}
      </div>
    </>
  );
}
