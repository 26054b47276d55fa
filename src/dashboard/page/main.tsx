/** Starts the page. */
import { render } from 'preact';
import { App } from './app.tsx';

const root = document.getElementById('app');
if (root !== null) {
  // Removes the text for browsers without JavaScript.
  root.replaceChildren();
  render(<App />, root);
}
