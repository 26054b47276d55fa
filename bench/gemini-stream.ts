/**
 * Generates Gemini's stream for the bench, modelled on the recording shared/streams gemini--text-crlf: a blank after
 * each colon, CRLF, no `[DONE]`.
 */

/** The token counts grow with each event. */
export function geminiText(text: string, at = 7, finishReason?: string): string {
  const thoughtsTokenCount = 603;
  const event = {
    candidates: [{ content: { parts: [{ text }], role: 'model' }, finishReason, index: 0 }],
    usageMetadata: {
      promptTokenCount: 11,
      candidatesTokenCount: at,
      totalTokenCount: 11 + at + thoughtsTokenCount,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 11 }],
      thoughtsTokenCount,
    },
    modelVersion: 'gemini-2.5-pro',
    responseId: 'aQCzaYSIIp3Uz7IP4L7z4Qk',
  };
  return `data: ${JSON.stringify(event).replaceAll('":', '": ')}\r\n\r\n`;
}

export function geminiStart(): string {
  return geminiText('So', 1);
}

export function geminiEnd(): string {
  return geminiText('', 5000, 'STOP');
}
