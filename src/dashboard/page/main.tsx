/** Starts the page. */
import { render } from 'preact';
import { App } from './app.tsx';

const root = document.getElementById('app');
if (root !== null) {
  // What stood there was for a browser without JavaScript.
  root.replaceChildren();
  render(<App />, root);
}
