/** The functions that compiled JSX calls. `h` makes a smaller bundle than the automatic JSX runtime. */
export { Fragment, h } from 'preact';
