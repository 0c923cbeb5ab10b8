// An edit session. Every change goes to the server as a range, the page shows how much KV it keeps, and the completion
// appears at the cursor.
import { type ChangeSet, Prec, StateEffect, StateField, type Text } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView, WidgetType, keymap } from '@codemirror/view';
import { ApiError, type ChatChunk, type KvCounts, type Usage, call } from './api';
import { fill, h, number_text } from './dom';
import { make_editor } from './editor';

class Ghost extends WidgetType {
  constructor(readonly text: string) {
    super();
  }
  override eq(other: Ghost): boolean {
    return other.text === this.text;
  }
  override toDOM(): HTMLElement {
    const element = document.createElement('span');
    element.className = 'is-ghost';
    element.textContent = this.text;
    return element;
  }
}

const set_ghost = StateEffect.define<{ at: number; text: string } | null>();
const ghost = StateField.define<{ at: number; text: string } | null>({
  create: () => null,
  update: (value, tr) => {
    for (const e of tr.effects) if (e.is(set_ghost)) return e.value;
    return tr.docChanged || tr.selection !== undefined ? null : value;
  },
  provide: (f) => EditorView.decorations.from(f, (v): DecorationSet => (v === null ? Decoration.none : Decoration.set(Decoration.widget({ widget: new Ghost(v.text), side: 1 }).range(v.at)))),
});

interface Edit {
  range: { start: { line: number; character: number }; end: { line: number; character: number } };
  text: string;
}

/** A change as the edits of a PATCH, each in positions of the text after the edits before it. */
export function edits_of(changes: ChangeSet, before: Text, after: Text): Edit[] {
  const edits: Edit[] = [];
  changes.iterChanges((from_a, to_a, from_b, _to_b, inserted) => {
    const start_line = after.lineAt(from_b);
    const start = { line: start_line.number - 1, character: from_b - start_line.from };
    const old_start = before.lineAt(from_a);
    const old_end = before.lineAt(to_a);
    const lines = old_end.number - old_start.number;
    const end = lines === 0 ? { line: start.line, character: start.character + (to_a - from_a) } : { line: start.line + lines, character: to_a - old_end.from };
    edits.push({ range: { start, end }, text: inserted.toString() });
  });
  return edits;
}

interface SessionAnswer {
  id?: string;
  version?: number;
  kv?: KvCounts;
}

const sample = `def area(width, height):
    return width * height


def volume(width, height, depth):
    return area(width, height) * depth


def weight(width, height, depth, density):
    return `;

export function make_live_tab(report: (error: unknown) => void): HTMLElement {
  let session: string | null = null;
  let version = 1;
  let waiting: { changes: ChangeSet; before: Text } | null = null;
  let sending = false;
  let asked: AbortController | null = null;
  let timer = 0;
  const path_name = 'live.py';

  const file = make_editor('The file of the edit session', path_name, sample, [
    ghost,
    Prec.highest(keymap.of([
      { key: 'Tab', run: (view) => accept(view) },
      { key: 'Escape', run: (view) => (view.state.field(ghost) === null ? false : (view.dispatch({ effects: set_ghost.of(null) }), true)) },
    ])),
    EditorView.updateListener.of((u) => {
      if (u.docChanged && session !== null) {
        waiting = waiting === null ? { changes: u.changes, before: u.startState.doc } : { changes: waiting.changes.compose(u.changes), before: waiting.before };
        void send();
      }
      if (u.docChanged || u.selectionSet) ask_soon();
    }),
  ]);
  file.view.dispatch({ selection: { anchor: file.view.state.doc.length } });
  const policy = h('select', { id: 'live-policy' }, ...[['exact', 'recomputed'], ['pie', 'moved with the text, recomputed later']].map(([n, m]) => h('option', { value: n }, `${n}: ${m}`)));
  const open = h('button', { class: 'primary', id: 'live-open', onclick: () => void (session === null ? begin() : end()) }, 'Open an edit session');
  const status = h('p', { class: 'status', role: 'status', 'aria-live': 'polite' }, 'No edit session is open.');
  const bar = h('div', { class: 'kv-bar', role: 'img', 'aria-label': 'KV of the prompt on the server' });
  const counts = h('dl', { class: 'figures' });
  const log = h('ol', { class: 'log', 'aria-label': 'Last calls' });

  function accept(view: EditorView): boolean {
    const g = view.state.field(ghost);
    if (g === null) return false;
    view.dispatch({ changes: { from: g.at, insert: g.text }, selection: { anchor: g.at + g.text.length }, userEvent: 'input.complete' });
    return true;
  }

  function note(text: string): void {
    log.prepend(h('li', {}, text));
    while (log.children.length > 12) log.lastElementChild!.remove();
  }

  function show_kv(kv: KvCounts | undefined): void {
    if (kv === undefined) return;
    const all = Math.max(1, kv.exact + kv.shifted + kv.stale);
    fill(bar, ...(['exact', 'shifted', 'stale'] as const).map((kind) => {
      const part = h('span', { class: `kv-${kind}`, title: `${kind}: ${kv[kind]} tokens` });
      part.style.width = `${(100 * kv[kind]) / all}%`;
      return part;
    }));
    bar.setAttribute('aria-label', `KV of the prompt: ${kv.exact} exact, ${kv.shifted} moved, ${kv.stale} stale tokens`);
    fill(counts, ...([['exact', kv.exact], ['moved', kv.shifted], ['stale', kv.stale]] as const).flatMap(([name, n]) => [h('dt', {}, name), h('dd', {}, number_text(n))]));
  }

  async function begin(): Promise<void> {
    try {
      version = 1;
      const answer = await call<SessionAnswer>('POST', 'v1/redline/sessions', { files: [{ path: path_name, text: file.text(), version }], cache: { policy: policy.value, healing: true }, idle_seconds: 600 });
      session = answer.id ?? null;
      waiting = null;
      policy.disabled = true;
      fill(open, 'Close the edit session');
      fill(status, 'Open. Type in the file; Tab accepts a completion.');
      show_kv(answer.kv);
      file.view.focus();
      ask_soon();
    } catch (error) {
      report(error);
    }
  }

  async function end(): Promise<void> {
    const id = session;
    session = null;
    asked?.abort();
    policy.disabled = false;
    fill(open, 'Open an edit session');
    fill(status, 'No edit session is open.');
    if (id !== null) await call('DELETE', `v1/redline/sessions/${id}`).catch(() => undefined);
  }

  async function send(): Promise<void> {
    if (sending) return;
    sending = true;
    try {
      while (waiting !== null && session !== null) {
        const { changes, before } = waiting;
        waiting = null;
        const edits = edits_of(changes, before, changes.apply(before));
        const began = performance.now();
        const answer = await call<SessionAnswer>('PATCH', `v1/redline/sessions/${session}/files/${path_name}`, { version: version + 1, edits });
        ++version;
        note(`PATCH: ${edits.length === 1 ? '1 edit' : `${edits.length} edits`}, ${number_text(performance.now() - began, 1)} ms`);
        show_kv(answer.kv);
      }
    } catch (error) {
      // Whatever the reason, the server's text may now differ from the editor's.
      const gone = error instanceof ApiError && (error.status === 404 || error.status === 409);
      await end();
      if (gone) await begin();
      else report(error);
    } finally {
      sending = false;
    }
  }

  function ask_soon(): void {
    asked?.abort();
    clearTimeout(timer);
    if (session !== null) timer = window.setTimeout(() => void ask(), 250);
  }

  async function ask(): Promise<void> {
    if (session === null || waiting !== null || sending) return ask_soon();
    const control = new AbortController();
    asked = control;
    const { doc, selection } = file.view.state;
    const at = selection.main.head;
    const line = doc.lineAt(at);
    const began = performance.now();
    try {
      const answer = await call<{ choices: { text?: string }[]; usage?: Usage } & ChatChunk>('POST', `v1/redline/sessions/${session}/complete`,
        { path: path_name, position: { line: line.number - 1, character: at - line.from }, max_tokens: 32, temperature: 0, stop: ['\n\n'] }, control.signal);
      if (control.signal.aborted) return;
      const text = answer.choices[0]?.text ?? '';
      note(`complete: ${answer.usage?.completion_tokens ?? 0} tokens, ${number_text(performance.now() - began, 1)} ms`);
      show_kv(answer.usage?.redline?.kv);
      if (text !== '' && file.view.state.doc === doc) file.view.dispatch({ effects: set_ghost.of({ at, text }) });
    } catch (error) {
      if (!(error instanceof DOMException && error.name === 'AbortError')) report(error);
    }
  }

  // Polls for KV that heals in the background.
  window.setInterval(() => {
    if (session === null || document.hidden || sending) return;
    void call<SessionAnswer>('GET', `v1/redline/sessions/${session}`).then((a) => show_kv(a.kv)).catch(() => undefined);
  }, 1000);

  return h('div', { class: 'tab-body live-tab' },
    h('section', { class: 'pane' }, h('header', { class: 'pane-head' }, h('h2', {}, 'The file being edited'), h('label', { for: 'live-policy' }, 'KV after a change'), policy, open), file.host, status),
    h('section', { class: 'pane' }, h('header', { class: 'pane-head' }, h('h2', {}, 'KV of the next prompt')), bar, counts,
      h('p', { class: 'hint' }, 'Exact: equal to recomputed KV. Moved: kept with a position offset. Stale: computed for an older text; recomputed while the model is idle.'),
      h('h3', {}, 'Last calls'), log));
}
