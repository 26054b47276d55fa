/** The cases that Weir fails, with the reason. A test compares this list with a run, so it is neither too long nor too short. */
export const WEIR_FAILING: Readonly<Record<string, string>> = {
  'calls/same-index-no-ids': 'without ids, a second name at one index counts as the same call',
  'calls/repeated-ids': "a provider's ids are kept, also where two calls have the same one",
  'calls/cut-named-calls': 'the finish reason of the provider is believed',
  'calls/cut-named-stop': 'the finish reason of the provider is believed',
  'calls/cut-then-done': '[DONE] is believed',
  'calls/to-messages-cut': 'the finish reason of the provider is believed',
  'finish/after-each-chunk': 'nothing follows a finish reason (C8)',
  'disconnects/while-silent':
    'workerd reports a disconnect at the next write: here at the heartbeat, after 15 s',
  'disconnects/before-output':
    'workerd reports a disconnect at the next write: here at the heartbeat, after 15 s',
  'disconnects/not-streamed': 'workerd reports a disconnect at the next write, and there is none',
};
