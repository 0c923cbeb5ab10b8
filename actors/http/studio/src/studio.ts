import { ApiError, type Model, call, store_key, stored_key } from './api';
import { fill, h } from './dom';
import { make_edit_tab } from './edit_tab';
import { make_live_tab } from './live_tab';
import { make_server_tab } from './server_tab';

const notice = h('p', { class: 'notice', role: 'alert', hidden: true });
const model_name = h('span', { class: 'model' });
let hide_timer = 0;

function report(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  fill(notice, message, h('button', { class: 'plain', 'aria-label': 'Dismiss', onclick: () => (notice.hidden = true) }, '\u00d7'));
  notice.hidden = false;
  clearTimeout(hide_timer);
  if (error instanceof ApiError && error.status === 401) ask_for_key(stored_key() === '' ? 'This server asks for an API key.' : 'The server does not accept this key.');
  else hide_timer = window.setTimeout(() => (notice.hidden = true), 12_000);
}

const key_reason = h('p', {});
const key_field = h('input', { id: 'key', type: 'password', autocomplete: 'off' });
const key_dialog = h('dialog', { 'aria-labelledby': 'key-title' }, h('form', { method: 'dialog', onsubmit: () => {
  store_key(key_field.value.trim());
  notice.hidden = true;
  void connect();
} }, h('h2', { id: 'key-title' }, 'API key'), key_reason, h('label', { for: 'key' }, 'Key'), key_field,
h('p', { class: 'hint' }, 'It is kept in this tab until you close it.'),
h('div', { class: 'row' }, h('button', { class: 'primary', value: 'use' }, 'Use'), h('button', { type: 'button', onclick: () => key_dialog.close() }, 'Cancel'))));

function ask_for_key(why: string): void {
  fill(key_reason, why);
  key_field.value = stored_key();
  if (!key_dialog.open) key_dialog.showModal();
}

async function connect(): Promise<void> {
  try {
    const { data } = await call<{ data: Model[] }>('GET', 'v1/models');
    fill(model_name, data.map((m) => (m.max_model_len === undefined ? m.id : `${m.id} (${m.max_model_len} tokens)`)).join(', '));
  } catch (error) {
    fill(model_name, 'no connection');
    report(error);
  }
}

const server_tab = make_server_tab(report);
const tabs = [
  { id: 'edit', title: 'Edit', body: make_edit_tab(report) },
  { id: 'live', title: 'Live session', body: make_live_tab(report) },
  { id: 'server', title: 'Server', body: server_tab.element },
];

const buttons = tabs.map((tab) => h('button', { role: 'tab', id: `tab-${tab.id}`, 'aria-controls': `panel-${tab.id}`, onclick: () => choose(tab.id, true) }, tab.title));
const panels = tabs.map((tab) => h('div', { role: 'tabpanel', id: `panel-${tab.id}`, 'aria-labelledby': `tab-${tab.id}`, hidden: true }, tab.body));

function choose(id: string, focus: boolean): void {
  tabs.forEach((tab, i) => {
    const chosen = tab.id === id;
    buttons[i]!.setAttribute('aria-selected', String(chosen));
    buttons[i]!.tabIndex = chosen ? 0 : -1;
    panels[i]!.hidden = !chosen;
    if (chosen && focus) buttons[i]!.focus();
  });
  server_tab.shown(id === 'server');
  history.replaceState(null, '', `#${id}`);
}

const tab_list = h('div', { role: 'tablist', 'aria-label': 'Views', onkeydown: (e) => {
  const key = (e as KeyboardEvent).key;
  const at = buttons.findIndex((b) => b.getAttribute('aria-selected') === 'true');
  if (key === 'ArrowRight') choose(tabs[(at + 1) % tabs.length]!.id, true);
  if (key === 'ArrowLeft') choose(tabs[(at + tabs.length - 1) % tabs.length]!.id, true);
} }, ...buttons);

const themes = ['auto', 'light', 'dark'];
function set_theme(name: string): void {
  if (name === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = name;
  localStorage.setItem('redline-theme', name);
  theme_button.textContent = `colours: ${name}`;
}
const theme_button = h('button', { class: 'plain', onclick: () => set_theme(themes[(themes.indexOf(localStorage.getItem('redline-theme') ?? 'auto') + 1) % themes.length]!) });

document.body.append(
  h('header', { class: 'top' }, h('h1', {}, 'Redline'), tab_list, model_name, h('button', { class: 'plain', onclick: () => ask_for_key('') }, 'key'), theme_button),
  notice, h('main', {}, ...panels), key_dialog);
const known = themes.includes(localStorage.getItem('redline-theme') ?? '') ? localStorage.getItem('redline-theme')! : 'auto';
set_theme(known);
const wanted = location.hash.slice(1);
choose(tabs.some((t) => t.id === wanted) ? wanted : 'edit', false);
void connect();
