// Each target pass as a column: the proposed tokens (outlined), the accepted ones (filled, by source), and the token
// that the model itself added.
import { type Answer } from './answer';
import { type PassRecord } from './api';
import { colour, fill, h, once_per_frame, sharp } from './dom';
import { source_named } from './sources';

const tokens_of = (p: PassRecord): number => p.text.reduce((n, [, tokens]) => n + tokens, 0);
const proposed_of = (p: PassRecord): number => p.proposed.reduce((n, [, tokens]) => n + tokens, 0);

export class Timeline {
  readonly element: HTMLElement;
  private readonly canvas = h('canvas', { class: 'timeline', role: 'img' });
  private readonly note = h('p', { class: 'note', 'aria-live': 'off' });
  private readonly table = h('tbody');
  private readonly paint = once_per_frame(() => this.draw());
  private answer: Answer | null = null;
  private pointed = -1;

  constructor(readonly name: string) {
    this.canvas.setAttribute('aria-label', `${name}: tokens per target pass`);
    const rows = h('details', {}, h('summary', {}, 'Passes as a table'), h('div', { class: 'scrolls', tabindex: 0 },
      h('table', {}, h('thead', {}, h('tr', {}, ...['pass', 'ms', 'proposed', 'verified', 'accepted', 'tokens'].map((n) => h('th', { scope: 'col' }, n)))), this.table)));
    rows.addEventListener('toggle', () => this.fill_table());
    this.element = h('div', { class: 'lane' }, this.canvas, this.note, rows);
    this.canvas.addEventListener('mousemove', (e) => {
      const n = this.answer?.passes.length ?? 0;
      this.pointed = n === 0 ? -1 : Math.min(n - 1, Math.floor((e.offsetX / this.canvas.clientWidth) * Math.max(n, 24)));
      this.paint();
    });
    this.canvas.addEventListener('mouseleave', () => {
      this.pointed = -1;
      this.paint();
    });
    new ResizeObserver(this.paint).observe(this.canvas);
  }

  show(answer: Answer): void {
    this.answer = answer;
    this.paint();
  }

  private draw(): void {
    const area = sharp(this.canvas);
    const passes = this.answer?.passes ?? [];
    this.say(passes);
    if (area === null || passes.length === 0) return;
    const { draw, width, height } = area;
    const highest = Math.max(4, ...passes.map((p) => Math.max(proposed_of(p) + 1, tokens_of(p))));
    const step = width / Math.max(passes.length, 24);
    const bar = Math.max(1, step - (step > 4 ? 1.5 : 0));
    const unit = (height - 4) / highest;
    passes.forEach((p, i) => {
      const x = i * step;
      let y = height;
      const outline = proposed_of(p) * unit;
      draw.fillStyle = colour('--proposed');
      draw.fillRect(x, height - outline, bar, outline);
      for (const [source, tokens] of p.text) {
        draw.fillStyle = colour(`--source-${source_named(source).name}`);
        y -= tokens * unit;
        draw.fillRect(x, y, bar, Math.max(tokens * unit - (unit > 6 ? 0.5 : 0), 1));
      }
      if (i === this.pointed) {
        draw.strokeStyle = colour('--text');
        draw.strokeRect(x + 0.5, Math.min(y, height - outline) - 1, bar, height);
      }
    });
  }

  private say(passes: PassRecord[]): void {
    const p = passes[this.pointed];
    if (p === undefined) {
      const tokens = passes.reduce((n, q) => n + tokens_of(q), 0);
      fill(this.note, passes.length === 0 ? '' : `${passes.length} rounds, ${tokens} tokens, ${(tokens / passes.length).toFixed(1)} a round`);
      return;
    }
    const proposed = p.proposed.map(([source, n]) => `${n} by ${source_named(source).label}`).join(', ') || 'nothing';
    fill(this.note, `round ${p.round} at ${(p.at_us / 1000).toFixed(1)} ms: proposed ${proposed}; verified ${p.verified}, accepted ${p.accepted}; ${tokens_of(p)} new tokens`);
  }

  private fill_table(): void {
    fill(this.table, ...(this.answer?.passes ?? []).map((p) => h('tr', {},
      ...[p.round, (p.at_us / 1000).toFixed(1), proposed_of(p), p.verified, p.accepted, tokens_of(p)].map((v) => h('td', {}, v)))));
  }
}
