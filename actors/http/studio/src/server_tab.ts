// The running server, from /v1/redline/status.
import { type ApiError, events } from './api';
import { colour, fill, h, number_text, once_per_frame, sharp } from './dom';

/** One forward pass of a target model: docs/api.md, "Status". */
interface Batch {
  us: number;
  predicted_us: number;
  sequences: number;
  prompt_rows: number;
  decode_rows: number;
  draft_rows: number;
}

interface Status {
  server: { version: string; ready: boolean; uptime_seconds: number; models: string[]; conflicts?: string[] };
  answers: { running: number; waiting: number; edit_sessions: number };
  schedulers: {
    worker: string;
    name?: string;
    ready: boolean;
    running: number;
    waiting: number;
    pages: number;
    pages_held: number;
    batches_total: number;
    rows_total: number;
    busy_us_total: number;
    preempted_total: number;
    cost_error_ratio: number;
    batch_fill: number;
    batches: Batch[];
    cost: { rows: number; us: number }[];
  }[];
  tokens_total: number;
  drafted_total: number;
  accepted_total: number;
}

const kinds = [
  ['prompt_rows', 'prompts', '--source-program'],
  ['draft_rows', 'drafts to verify', '--source-lookup'],
  ['decode_rows', 'decode steps', '--source-model'],
] as const;

export function make_server_tab(report: (error: unknown) => void): { element: HTMLElement; shown(on: boolean): void } {
  let control: AbortController | null = null;
  let last: Status | null = null;
  let tokens_before: { at: number; tokens: number } | null = null;
  let tokens_per_second = 0;
  const recent: Batch[] = [];
  const cards = h('dl', { class: 'cards' });
  const strip = h('canvas', { class: 'strip', role: 'img', 'aria-label': 'Rows of the last batches by kind' });
  const curve = h('canvas', { class: 'curve', role: 'img', 'aria-label': 'Time of a pass by its rows, predicted and measured' });
  const workers = h('tbody');
  const status = h('p', { class: 'status', role: 'status' });
  const paint = once_per_frame(draw);
  new ResizeObserver(paint).observe(strip);

  async function follow(): Promise<void> {
    const mine = new AbortController();
    control = mine;
    fill(status, '');
    try {
      for await (const now of events<Status>('GET', 'v1/redline/status', undefined, mine.signal)) take(now);
      if (!mine.signal.aborted) fill(status, 'The server ended the stream.');
    } catch (error) {
      if (error instanceof DOMException && error.name === 'AbortError') return;
      fill(status, (error as ApiError).message);
      report(error);
    } finally {
      if (control === mine) control = null;
    }
  }

  function take(now: Status): void {
    const at = performance.now();
    if (tokens_before !== null && at > tokens_before.at) {
      const rate = (1000 * (now.tokens_total - tokens_before.tokens)) / (at - tokens_before.at);
      tokens_per_second = tokens_per_second === 0 ? rate : 0.7 * tokens_per_second + 0.3 * rate;
    }
    tokens_before = { at, tokens: now.tokens_total };
    for (const s of now.schedulers) recent.push(...s.batches);
    recent.splice(0, Math.max(0, recent.length - 400));
    last = now;
    paint();
  }

  function draw(): void {
    if (last === null) return;
    const { answers, schedulers } = last;
    const pages = schedulers.reduce((n, s) => n + s.pages, 0);
    const held = schedulers.reduce((n, s) => n + s.pages_held, 0);
    const uptime = last.server.uptime_seconds;
    const figures: [string, string][] = [
      ['tokens/s', number_text(tokens_per_second)],
      ['answers running', number_text(answers.running)],
      ['waiting', number_text(answers.waiting)],
      ['edit sessions', number_text(answers.edit_sessions)],
      ['KV pages in use', `${number_text(held)} of ${number_text(pages)}`],
      ['drafts accepted', last.drafted_total === 0 ? '-' : `${number_text((100 * last.accepted_total) / last.drafted_total)} %`],
      ['models', last.server.ready ? last.server.models.join(', ') : 'not ready'],
      ...(last.server.conflicts ?? []).map((why): [string, string] => ['name conflict', why]),
      ['version', `${last.server.version}, up ${uptime < 3600 ? `${Math.floor(uptime / 60)} min` : `${number_text(uptime / 3600, 1)} h`}`],
    ];
    fill(cards, ...figures.flatMap(([name, value]) => [h('div', {}, h('dt', {}, name), h('dd', {}, value))]));
    fill(workers, ...schedulers.map((s) => h('tr', {}, ...[s.name ?? s.worker, s.ready ? 'ready' : 'not ready', s.running, s.waiting, `${s.pages_held}/${s.pages}`, number_text(s.batches_total),
      s.batches_total === 0 ? '-' : number_text(s.rows_total / s.batches_total, 1), `${number_text(100 * s.batch_fill)} %`, number_text(s.preempted_total), `${number_text(100 * s.cost_error_ratio)} %`].map((v) => h('td', {}, v)))));
    draw_strip();
    draw_curve();
  }

  function draw_strip(): void {
    const area = sharp(strip);
    if (area === null) return;
    const { draw, width, height } = area;
    const step = 6;
    const shown = recent.slice(-Math.floor(width / step));
    const highest = Math.max(8, ...shown.map((b) => kinds.reduce((n, [kind]) => n + b[kind], 0)));
    shown.forEach((b, i) => {
      let y = height;
      for (const [kind, , tint] of kinds) {
        const size = (b[kind] / highest) * (height - 14);
        draw.fillStyle = colour(tint);
        draw.fillRect(i * step, y - size, step - 1, size);
        y -= size;
      }
    });
    draw.fillStyle = colour('--faint');
    draw.font = '11px sans-serif';
    draw.fillText(`${highest} rows`, 2, 10);
  }

  function draw_curve(): void {
    const area = sharp(curve);
    const cost = last?.schedulers[0]?.cost ?? [];
    if (area === null) return;
    const { draw, width, height } = area;
    const points = recent.map((b) => [kinds.reduce((n, [kind]) => n + b[kind], 0), b.us] as const).filter(([rows]) => rows > 0);
    const rows_max = 2 ** Math.ceil(Math.log2(2 * Math.max(8, ...points.map(([r]) => r))));
    const us_max = Math.max(1, ...points.map(([, us]) => us), ...cost.filter((c) => c.rows <= rows_max).map((c) => c.us)) * 1.1;
    const x = (rows: number): number => 4 + (Math.log2(rows) / Math.log2(rows_max)) * (width - 12);
    const y = (us: number): number => height - 4 - (us / us_max) * (height - 20);
    draw.fillStyle = colour('--source-lookup');
    for (const [rows, us] of points) draw.fillRect(x(rows) - 1.5, y(us) - 1.5, 3, 3);
    draw.strokeStyle = colour('--source-model');
    draw.beginPath();
    cost.filter((c) => c.rows <= rows_max).forEach((c, i) => (i === 0 ? draw.moveTo(x(c.rows), y(c.us)) : draw.lineTo(x(c.rows), y(c.us))));
    draw.stroke();
    draw.fillStyle = colour('--faint');
    draw.font = '11px sans-serif';
    draw.fillText(`${number_text(us_max / 1000, 1)} ms; 1 to ${rows_max} rows (logarithmic)`, 2, 10);
  }

  const element = h('div', { class: 'tab-body server-tab' },
    h('section', { class: 'pane wide' }, cards, status),
    h('section', { class: 'pane' }, h('header', { class: 'pane-head' }, h('h2', {}, 'Batches'), h('ul', { class: 'legend' }, ...kinds.map(([, label, tint]) => {
      const dot = h('span', { class: 'dot' });
      dot.style.background = `var(${tint})`;
      return h('li', {}, dot, label);
    }))), strip),
    h('section', { class: 'pane' }, h('header', { class: 'pane-head' }, h('h2', {}, 'Time of a pass'), h('p', { class: 'hint' }, 'line: predicted by the scheduler; points: measured')), curve),
    h('section', { class: 'pane wide' }, h('h2', {}, 'Workers'), h('div', { class: 'scrolls', tabindex: 0 }, h('table', {}, h('thead', {}, h('tr', {},
      ...['worker', 'state', 'running', 'waiting', 'pages', 'batches', 'rows per batch', 'fill', 'preempted', 'cost error'].map((n) => h('th', { scope: 'col' }, n)))), workers))));
  return {
    element,
    shown(on) {
      if (on && control === null) void follow();
      if (!on) {
        control?.abort();
        control = null;
      }
    },
  };
}
