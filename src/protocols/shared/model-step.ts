/** Collects one step of the model, for client protocols that send reasoning states back as opaque texts. */
import type { TextBlock, ToolCallBlock, Turn } from '../../canonical/conversation.ts';
import { readReasoningDetails } from '../../canonical/reasoning-details.ts';
import { signatureOfCall } from '../../request-translation/messages.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { ReasoningState } from './reasoning-state.ts';

/** What the model produced in one step, in the order of its kind. */
export class ModelStep {
  readonly texts: TextBlock[] = [];
  readonly thoughts: string[] = [];
  readonly calls: ToolCallBlock[] = [];
  readonly #details: JsonObject[] = [];
  /** `extra_content` by the id of its call. */
  readonly #extras = new Map<string, JsonObject>();

  addState(state: ReasoningState): void {
    if ('detail' in state) this.#details.push(state.detail);
    else this.#extras.set(state.call, state.extra_content);
  }

  /**
   * The assistant's turn. Texts become one text, unless one of them has a mark.
   * @param separator between the texts, and between the thoughts
   */
  turn(separator: string): Turn {
    const { texts, thoughts } = this;
    const thought = thoughts.join(separator);
    const text = texts.map((block) => block.text).join(separator);
    const isMarked = texts.some(({ extra }) => extra !== undefined);
    return {
      role: 'assistant',
      blocks: [
        ...(thoughts.length === 0 ? [] : [{ kind: 'reasoning', text: thought } as const]),
        ...readReasoningDetails(this.#details),
        ...(isMarked ? texts : text === '' ? [] : [{ kind: 'text', text } as const]),
        ...this.calls.map((call) => this.#withState(call)),
      ],
      extra: {},
    };
  }

  #withState(call: ToolCallBlock): ToolCallBlock {
    const extra_content = this.#extras.get(call.id);
    if (extra_content === undefined) return call;
    return { ...call, signature: signatureOfCall(extra_content), extra: { extra_content } };
  }
}
