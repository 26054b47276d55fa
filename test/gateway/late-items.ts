/** The items of a response that a Responses server sends late, in the tests of what clients then see. */
export const TEXT = 'Low water at nöon, 🌊 and "high" water\nat six.';
export const THOUGHTS = 'The moon pulls; so the tide follows it.';
export const JSON_TEXT = '{"at":"pier","depth":[1,2.5]}';

export const REASONING = {
  id: 'rs_1',
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: THOUGHTS }],
};
export const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: TEXT, annotations: [] }],
};
export const CALL = {
  id: 'fc_1',
  type: 'function_call',
  call_id: 'call_1',
  name: 'gauge',
  arguments: JSON_TEXT,
  status: 'completed',
};
