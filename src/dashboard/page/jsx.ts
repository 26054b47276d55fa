/** What JSX is compiled to: calls of `h`, which take less room than the automatic form's. */
export { Fragment, h } from 'preact';
