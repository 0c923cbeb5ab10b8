// The server's API as docs/api.md describes it; the page uses nothing else.

/** What went wrong, in words for the user of the page. */
export class ApiError extends Error {
  constructor(message: string, readonly status: number, readonly code: string | null) {
    super(message);
  }
}

// The key is stored as long as the tab is open.
const key_name = 'redline-api-key';
export const stored_key = (): string => sessionStorage.getItem(key_name) ?? '';
export const store_key = (key: string): void => (key === '' ? sessionStorage.removeItem(key_name) : sessionStorage.setItem(key_name, key));

async function open(method: string, path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (stored_key() !== '') headers['Authorization'] = `Bearer ${stored_key()}`;
  const base = new URL('.', document.baseURI);
  let response: Response;
  try {
    response = await fetch(new URL(path, base), { method, headers, signal: signal ?? null, body: body === undefined ? null : JSON.stringify(body) });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError('The server does not answer. Is it still running?', 0, null);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response: Response): Promise<ApiError> {
  let message = `The server answered with status ${response.status}.`;
  let code: string | null = null;
  try {
    const { error } = (await response.json()) as { error?: { message?: string; code?: string | null } };
    if (typeof error?.message === 'string') message = error.message;
    if (typeof error?.code === 'string') code = error.code;
  } catch {
    // The body is not JSON, so the status must suffice.
  }
  const later = response.headers.get('Retry-After');
  if (later !== null) message += ` Try again in ${later} s.`;
  return new ApiError(message, response.status, code);
}

export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await open(method, path, body, signal);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** The events of a stream, parsed. Throws an error that the stream contains. */
export async function* events<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): AsyncGenerator<T> {
  const response = await open(method, path, body, signal);
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      let part: ReadableStreamReadResult<string>;
      try {
        part = await reader.read();
      } catch (error) {
        if (error instanceof DOMException && error.name === 'AbortError') throw error;
        throw new ApiError('The connection to the server was lost.', 0, null);
      }
      if (part.done) return;
      rest += part.value;
      for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
        const lines = rest.slice(0, end).split('\n');
        rest = rest.slice(end + 2);
        const data = lines.filter((l) => l.startsWith('data:')).map((l) => l.slice(5).trimStart()).join('\n');
        if (data === '' || data === '[DONE]') continue;
        const event = JSON.parse(data) as T & { error?: { message?: string; code?: string | null } };
        if (event.error !== undefined && event.error !== null) throw new ApiError(event.error.message ?? 'The answer ended early.', 200, event.error.code ?? null);
        yield event as Awaited<T>;
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

export interface Model {
  id: string;
  max_model_len?: number;
  /** known_phrases: examples for a model that understands few instructions. */
  meta?: { known_phrases?: string[] };
}

export interface SourceCounts {
  drafted: number;
  accepted: number;
}

/** One round of an answer: docs/api.md, "Traces". */
export interface PassRecord {
  round: number;
  at_us: number;
  passes: number;
  rows: number;
  /** The proposed tokens by source; then how many the model verified and accepted. */
  proposed: [source: string, tokens: number][];
  verified: number;
  accepted: number;
  /** The tokens that were added, by source, with the bytes of their text. */
  text: [source: string, tokens: number, bytes: number][];
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  redline?: {
    drafted: number;
    accepted: number;
    target_passes: number;
    draft_passes: number;
    rows: number;
    seconds: number;
    sources: Record<string, SourceCounts>;
    kv?: KvCounts;
  };
}

export interface KvCounts {
  exact: number;
  shifted: number;
  stale: number;
}

export interface ChatChunk {
  choices: { delta?: { content?: string | null }; finish_reason?: string | null }[];
  usage?: Usage | null;
  redline?: { trace?: PassRecord[] };
}
