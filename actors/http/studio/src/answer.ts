// The answer as it streams in: its text, the source of each piece, and the file inside its code fence.
import { type ChatChunk, type PassRecord, type Usage } from './api';

export interface ColouredSpan {
  from: number;
  to: number;
  source: string;
}

const utf8_bytes = (point: number): number => (point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4);

export class Answer {
  content = '';
  passes: PassRecord[] = [];
  usage: Usage | null = null;
  finish_reason: string | null = null;
  /** Ranges of `content`, in UTF-16 units. */
  spans: ColouredSpan[] = [];
  began = performance.now();
  seconds = 0;

  private waiting: [source: string, bytes: number][] = [];
  private at = 0;

  add(chunk: ChatChunk): void {
    const choice = chunk.choices[0];
    this.content += choice?.delta?.content ?? '';
    if (choice?.finish_reason) this.finish_reason = choice.finish_reason;
    if (chunk.usage) this.usage = chunk.usage;
    for (const record of chunk.redline?.trace ?? []) {
      this.passes.push(record);
      for (const [source, , bytes] of record.text) if (bytes > 0) this.waiting.push([source, bytes]);
    }
    this.seconds = (performance.now() - this.began) / 1000;
    this.colour();
  }

  tokens(): number {
    return this.usage?.completion_tokens ?? this.passes.reduce((sum, p) => sum + p.text.reduce((n, [, tokens]) => n + tokens, 0), 0);
  }

  /** Records count bytes, and text may arrive later than its record, so spans grow as far as the text has arrived. */
  private colour(): void {
    while (this.waiting.length > 0 && this.at < this.content.length) {
      const first = this.waiting[0]!;
      const from = this.at;
      while (first[1] > 0 && this.at < this.content.length) {
        const point = this.content.codePointAt(this.at)!;
        this.at += point > 0xffff ? 2 : 1;
        first[1] -= utf8_bytes(point);
      }
      const last = this.spans[this.spans.length - 1];
      if (this.at > from) {
        if (last !== undefined && last.source === first[0] && last.to === from) last.to = this.at;
        else this.spans.push({ from, to: this.at, source: first[0] });
      }
      if (first[1] > 0) return;
      this.waiting.shift();
      // A token may end inside a character; the next token then has less text of its own.
      if (first[1] < 0 && this.waiting.length > 0) this.waiting[0]![1] += first[1];
    }
  }

  /** The file's range in `content`: after the opening fence line, before the line that closes it. */
  file(): { from: number; to: number } {
    const fence = /^\s*(`{3,})[^\n`]*\n/.exec(this.content);
    if (fence === null) return this.content.trimStart().startsWith('`') ? { from: this.content.length, to: this.content.length } : { from: 0, to: this.content.length };
    const from = fence[0].length;
    const tail = /\n?(`+)\s*$/.exec(this.content.slice(from));
    const closes = tail !== null && (this.finish_reason !== null ? tail[1]!.length >= fence[1]!.length : true);
    const to = closes ? from + tail!.index + (this.content[from + tail!.index] === '\n' ? 1 : 0) : this.content.length;
    return { from, to };
  }
}
