/** What a browser gets at the base path itself: the dashboard, unless a site has the path. */
import { expect, test } from 'vitest';
import { LimitedGateway } from './limited-gateway.ts';

const PAGE = { headers: { accept: 'text/html,application/xhtml+xml' } };

test('GET / of a browser leads to the dashboard; other clients get the list of routes', async () => {
  const gateway = new LimitedGateway();
  const opened = await gateway.fetch('/', '', PAGE);
  expect([opened.status, opened.headers.get('location')]).toEqual([302, '/dashboard']);
  expect((await gateway.fetch('/', '')).status).toBe(404);
});

test('GET / with ORIGIN and the base path / does not lead to the dashboard: the site has it', async () => {
  const gateway = new LimitedGateway({ ORIGIN: 'https://www.example.com' });
  expect((await gateway.fetch('/', '', PAGE)).headers.get('location')).toBeNull();
});

test('GET /llm with BASE_PATH=/llm and ORIGIN leads to the dashboard', async () => {
  const gateway = new LimitedGateway({ ORIGIN: 'https://www.example.com', BASE_PATH: '/llm' });
  const opened = await gateway.fetch('/llm', '', PAGE);
  expect([opened.status, opened.headers.get('location')]).toEqual([302, '/llm/dashboard']);
});
