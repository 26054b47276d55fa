/** A provider behind a service binding: does what the requested model's name says, and logs each request that reaches it. */

const EVENT = { 'content-type': 'text/event-stream' };

function chunk(fields: object): Uint8Array {
  const object = { id: 'a', object: 'chat.completion.chunk', created: 1, model: 'm', ...fields };
  return new TextEncoder().encode(`data: ${JSON.stringify(object)}\n\n`);
}
const FIRST = chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' } }] });
const LAST = chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
const USAGE = chunk({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } });
const DONE = new TextEncoder().encode('data: [DONE]\n\n');

const WHOLE = {
  ...{ id: 'a', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
};

/** @param end what happens after these parts */
function stream(parts: readonly Uint8Array[], end: 'closes' | 'breaks' | 'stays'): ReadableStream {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const run = async () => {
    // Each write resolves when its part has been read, so that an error discards none.
    for (const part of parts) await writer.write(part);
    if (end === 'closes') await writer.close();
    else if (end === 'breaks') await writer.abort(new Error('The provider broke'));
    else await scheduler.wait(3_600_000);
  };
  run().catch(() => {});
  return readable;
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { method, url, headers } = request;
    const text = await request.text();
    // biome-ignore lint/suspicious/noConsole: a Worker's log is its console, and a test reads this line.
    console.log(
      JSON.stringify({ event: 'bound_request', method, url, headers: Object.fromEntries(headers) }),
    );
    if (method === 'GET') return Response.json({ data: [{ id: 'whole' }] });
    const { model } = JSON.parse(text) as { readonly model: string }; // decode
    switch (model) {
      case 'whole':
        return Response.json(WHOLE);
      case 'streamed':
        return new Response(stream([FIRST, LAST, USAGE, DONE], 'closes'), { headers: EVENT });
      case 'fails':
        return Response.json({ error: { message: 'Out of memory' } }, { status: 500 });
      case 'redirects':
        return new Response(null, {
          status: 307,
          headers: { location: 'http://elsewhere.example/v1/stolen' },
        });
      case 'hangs':
        await scheduler.wait(3_600_000);
        return new Response();
      case 'stops':
        return new Response(stream([FIRST], 'stays'), { headers: EVENT });
      case 'breaks':
        return new Response(stream([FIRST], 'breaks'), { headers: EVENT });
      case 'ends-early':
        return new Response(stream([FIRST], 'closes'), { headers: EVENT });
      case 'breaks-first':
        return new Response(stream([], 'breaks'), { headers: EVENT });
      case 'breaks-json':
        return new Response(stream([new TextEncoder().encode('{"id":"a","choices":[')], 'breaks'), {
          headers: { 'content-type': 'application/json' },
        });
      default:
        throw new Error('The provider threw');
    }
  },
};
