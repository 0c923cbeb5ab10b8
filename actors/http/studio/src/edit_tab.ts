// One edit: a file, an instruction, and the new file streaming in. A race also runs the edit without speculation.
import { keymap } from '@codemirror/view';
import { Prec } from '@codemirror/state';
import { Answer } from './answer';
import { ApiError, type ChatChunk, type Model, call, events } from './api';
import { fill, h, number_text, once_per_frame } from './dom';
import { make_editor } from './editor';
import { ResultView } from './result_view';
import { sources } from './sources';
import { Timeline } from './timeline';

const sample_path = 'inventory.py';
/** Instructions that the demonstration model follows correctly on the sample; the first one is preset. */
const sample_instructions = [
  'Rename the variable `name` to `key`.',
  'Set `LIMIT` to 25.',
  'Raise TypeError instead of ValueError.',
  'Rename the class `Inventory` to `Store`.',
  'Change every `<` to `<=`.',
  'Set the default of `count` in `add` to 2.',
];
const sample_text = `"""Keeps count of what is in the store."""

LIMIT = 10


class Inventory:
    def __init__(self):
        self.items = {}

    def add(self, name, count=1):
        if count < 0:
            raise ValueError("count")
        self.items[name] = self.items.get(name, 0) + count
        return self.items[name]

    def remove(self, name, count=1):
        have = self.items.get(name, 0)
        if have < count:
            raise KeyError(name)
        self.items[name] = have - count
        return self.items[name]

    def low(self):
        return [name for name, count in self.items.items() if count < LIMIT]
`;

const methods: [name: string, means: string][] = [
  ['auto', 'chooses the best source of drafts in each round'],
  ['lookup', 'drafts from earlier text of the prompt and the answer'],
  ['assisted', 'drafts by the draft model'],
  ['blazedit', 'drafts by the draft model, with long copies where it agrees'],
  ['prediction', 'the old file as the draft'],
  ['regular', 'no drafts: one token per pass'],
];

interface Lane {
  title: string;
  answer: Answer;
  timeline: Timeline;
  figure: HTMLElement;
  bar: HTMLElement;
}

export function make_edit_tab(report: (error: unknown) => void): HTMLElement {
  const file = make_editor('The file to edit', sample_path, sample_text, Prec.highest(keymap.of([{ key: 'Mod-Enter', run: () => (void run(), true) }])));
  const result = new ResultView();
  const path = h('input', { id: 'edit-path', value: sample_path, autocomplete: 'off', spellcheck: 'false' });
  const instruction = h('textarea', { id: 'edit-instruction', rows: 2 }, sample_instructions[0]);
  const example = h('select', { id: 'edit-example', class: 'examples', 'aria-label': 'Examples for the sample file', onchange: () => {
    instruction.value = example.value;
    example.selectedIndex = 0;
  } }, h('option', { value: '' }, 'Examples'), ...sample_instructions.map((words) => h('option', {}, words)));
  const method = h('select', { id: 'edit-method' }, ...methods.map(([name, means]) => h('option', { value: name, title: means }, `${name}: ${means}`)));
  const temperature = h('input', { id: 'edit-temperature', type: 'number', min: 0, max: 2, step: 0.1, value: 0 });
  const race = h('input', { id: 'edit-race', type: 'checkbox', checked: true });
  const go = h('button', { class: 'primary', id: 'edit-run', onclick: () => void run() }, 'Run');
  const stop = h('button', { id: 'edit-stop', disabled: true, onclick: () => running?.abort() }, 'Stop');
  const take = h('button', { id: 'edit-take', disabled: true, onclick: () => take_over() }, 'Use as the file');
  const status = h('p', { class: 'status', role: 'status', 'aria-live': 'polite' });
  const lanes_area = h('div', { class: 'lanes' });
  const by_source = h('tbody');
  let running: AbortController | null = null;
  let lanes: Lane[] = [];

  path.addEventListener('change', () => file.set_path(path.value));
  instruction.addEventListener('keydown', (e) => {
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) void run();
  });
  const open_file = h('input', { type: 'file', id: 'edit-open', class: 'hidden-input', onchange: () => void load() });

  async function load(): Promise<void> {
    const chosen = open_file.files?.[0];
    if (chosen === undefined) return;
    const most = 4 << 20;
    if (chosen.size > most) return report(new ApiError(`${chosen.name} has ${number_text(chosen.size / (1 << 20), 1)} MiB; the server accepts files of up to 4 MiB.`, 0, null));
    const bytes = new Uint8Array(await chosen.arrayBuffer());
    let text: string;
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch {
      return report(new ApiError(`${chosen.name} is not UTF-8 text.`, 0, null));
    }
    if (text.includes('\0')) return report(new ApiError(`${chosen.name} looks like a binary file.`, 0, null));
    path.value = chosen.name;
    file.set_path(chosen.name);
    file.set_text(text);
    example.hidden = true;  // the examples apply to the sample only
  }

  function take_over(): void {
    file.set_text(result.editor.text());
    take.disabled = true;
  }

  function make_lane(title: string): Lane {
    const figure = h('span', { class: 'figure' });
    const bar = h('div', { class: 'progress' }, h('div'));
    const timeline = new Timeline(title);
    lanes_area.append(h('section', { class: 'race-lane', 'data-method': title }, h('header', {}, h('h3', {}, title), figure), bar, timeline.element));
    return { title, answer: new Answer(), timeline, figure, bar: bar.firstElementChild as HTMLElement };
  }

  const paint = once_per_frame(() => {
    const expected = Math.max(1, file.text().length);
    for (const lane of lanes) {
      const { answer } = lane;
      lane.timeline.show(answer);
      lane.bar.style.width = `${Math.min(100, answer.finish_reason !== null ? 100 : (100 * answer.content.length) / expected)}%`;
      const seconds = answer.usage?.redline?.seconds ?? answer.seconds;
      fill(lane.figure, answer.content === '' ? '' : `${number_text(answer.tokens() / Math.max(seconds, 1e-3))} tokens/s, ${number_text(seconds, 2)} s`);
    }
    const ours = lanes[0]?.answer.usage?.redline;
    fill(by_source, ...(ours === undefined ? [] : sources.map((s) => [s, ours.sources[s.name]] as const).filter(([, c]) => c !== undefined && c.drafted > 0).map(([s, c]) =>
      h('tr', {}, h('th', { scope: 'row' }, h('span', { class: `dot dot-${s.name}` }), s.label), h('td', {}, c!.drafted), h('td', {}, c!.accepted), h('td', {}, `${number_text((100 * c!.accepted) / c!.drafted)} %`)))));
  });

  async function follow(lane: Lane, session: string, chosen: string, signal: AbortSignal, shows: boolean): Promise<void> {
    lane.answer.began = performance.now();
    const body = {
      path: path.value, instruction: instruction.value, stream: true, stream_options: { include_usage: true },
      temperature: Number(temperature.value), seed: 1, redline: { trace: true, speculation: { method: chosen } },
    };
    for await (const chunk of events<ChatChunk>('POST', `v1/redline/sessions/${session}/edit`, body, signal)) {
      lane.answer.add(chunk);
      if (shows) result.show(lane.answer);
      paint();
    }
  }

  async function run(): Promise<void> {
    if (running !== null) return;
    const control = new AbortController();
    running = control;
    go.disabled = true;
    stop.disabled = false;
    take.disabled = true;
    fill(status, 'Waiting for the first token ...');
    fill(lanes_area);
    const chosen = method.value;
    lanes = [make_lane(chosen)];
    if (race.checked && chosen !== 'regular') lanes.push(make_lane('regular'));
    result.begin(path.value, file.text());
    const opened: string[] = [];
    try {
      // An edit session answers its calls in order, so each runner has its own.
      await Promise.all(lanes.map(async (lane, i) => {
        const { id } = await call<{ id: string }>('POST', 'v1/redline/sessions', { files: [{ path: path.value, text: file.text(), version: 1 }], idle_seconds: 60 }, control.signal);
        opened.push(id);
        await follow(lane, id, lane.title, control.signal, i === 0);
      }));
      result.settle();
      fill(status, verdict(), ...(result.changed_lines === 0 ? await hint() : []));
      take.disabled = false;
    } catch (error) {
      if (error instanceof DOMException && error.name === 'AbortError') fill(status, 'Stopped.');
      else {
        fill(status, 'The edit failed.');
        report(error);
      }
    } finally {
      running = null;
      go.disabled = false;
      stop.disabled = true;
      paint();
      for (const id of opened) void call('DELETE', `v1/redline/sessions/${id}`).catch(() => undefined);
    }
  }

  /** A hint after an edit that changed nothing: the wordings of a model that understands only a few. */
  async function hint(): Promise<(Node | string)[]> {
    const { data } = await call<{ data: Model[] }>('GET', 'v1/models').catch(() => ({ data: [] as Model[] }));
    const phrases = data[0]?.meta?.known_phrases ?? [];
    if (phrases.length === 0) return [];
    return [' This demonstration model knows few phrases; try one like:', h('ul', { class: 'phrases' }, ...phrases.map((words) => h('li', {}, words)))];
  }

  function verdict(): string {
    const [ours, other] = lanes;
    const usage = ours!.answer.usage?.redline;
    const parts = [`${result.changed_lines === 1 ? '1 line' : `${result.changed_lines} lines`} changed.`];
    if (usage !== undefined) parts.push(`${ours!.answer.tokens()} tokens in ${usage.target_passes} passes.`);
    if (other !== undefined) {
      const theirs = other.answer.usage?.redline;
      if (usage !== undefined && theirs !== undefined) parts.push(`${number_text(theirs.seconds / Math.max(usage.seconds, 1e-6), 1)} times as fast as without speculation,`);
      parts.push(ours!.answer.content === other.answer.content ? 'with the same bytes.' : Number(temperature.value) > 0 ? 'with different bytes.' : 'BUT with different bytes: please report this.');
    }
    if (ours!.answer.finish_reason === 'length') parts.push('The answer was cut at its token limit.');
    return parts.join(' ');
  }

  return h('div', { class: 'tab-body edit-tab' },
    h('section', { class: 'pane' },
      h('header', { class: 'pane-head' }, h('label', { for: 'edit-path' }, 'File'), path, h('label', { for: 'edit-open', class: 'button' }, 'Open ...'), open_file),
      file.host,
      h('div', { class: 'form' },
        h('div', { class: 'row' }, h('label', { for: 'edit-instruction' }, 'Instruction'), example), instruction,
        h('div', { class: 'row' }, h('label', { for: 'edit-method' }, 'Method'), method, h('label', { for: 'edit-temperature' }, 'Temperature'), temperature,
          h('label', { class: 'check', for: 'edit-race' }, race, 'race against regular decoding')),
        h('div', { class: 'row' }, go, stop, take, h('span', { class: 'hint' }, 'Ctrl+Enter runs')))),
    h('section', { class: 'pane' },
      h('header', { class: 'pane-head' }, h('h2', {}, 'The new file'),
        h('ul', { class: 'legend' }, ...sources.slice(0, 4).map((s) => h('li', { title: s.means }, h('span', { class: `dot dot-${s.name}` }), s.label)))),
      result.editor.host, status),
    h('section', { class: 'pane wide passes' }, lanes_area,
      h('table', { class: 'sources' }, h('caption', {}, 'Drafts by source'), h('thead', {}, h('tr', {}, ...['source', 'verified', 'accepted', 'share'].map((n) => h('th', { scope: 'col' }, n)))), by_source)));
}
