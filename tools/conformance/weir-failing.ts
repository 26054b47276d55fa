/** The cases that Weir fails, with the reason. A test compares this list with a run, so it is neither too long nor too short. */
export const WEIR_FAILING: Readonly<Record<string, string>> = {
  'disconnects/while-silent':
    'workerd reports a disconnect at the next write: here at the heartbeat, after 15 s',
  'disconnects/before-output':
    'workerd reports a disconnect at the next write: here at the heartbeat, after 15 s',
  'disconnects/not-streamed': 'workerd reports a disconnect at the next write, and there is none',
};
