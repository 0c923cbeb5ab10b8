// Writes dashboard.json for Grafana: node make_dashboard.mjs > dashboard.json
const by_instance = '{{instance}}';
const of = 'job=~"$job", instance=~"$instance"';
const rate = (metric, labels = '') => `rate(${metric}{${of}${labels && ', ' + labels}}[$__rate_interval])`;
const quantiles = (metric, ...qs) => qs.map((q) => [`histogram_quantile(${q}, sum by (le) (${rate(metric + '_bucket')}))`, `p${q * 100}`]);

const rows = [
  ['Now', [
    ['Ready', 'stat', 'bool_yes_no', [[`redline_ready{${of}}`, by_instance]], 'Whether requests are taken'],
    ['Tokens a second', 'timeseries', 'short', [[`sum by (instance) (${rate('redline_generation_tokens_total')})`, by_instance]], 'Generated tokens'],
    ['Answers', 'timeseries', 'short', [[`sum(redline_requests_running{${of}})`, 'running'], [`sum(redline_requests_waiting{${of}})`, 'waiting'], [`sum(redline_live_sessions{${of}})`, 'edit sessions']], ''],
    ['Requests by outcome', 'timeseries', 'reqps', [[`sum by (reason) (${rate('redline_requests_total')})`, '{{reason}}']], ''],
  ]],
  ['What users wait for', [
    ['Time to the first token', 'timeseries', 's', quantiles('redline_time_to_first_token_seconds', 0.5, 0.95, 0.99), "From a request's arrival"],
    ['Time between tokens', 'timeseries', 's', quantiles('redline_inter_token_seconds', 0.5, 0.95, 0.99), 'Tokens that arrive together share the time equally'],
    ['Time in the queue', 'timeseries', 's', quantiles('redline_queue_seconds', 0.5, 0.95), "Until an answer's first pass begins"],
    ['Whole requests', 'timeseries', 's', quantiles('redline_request_seconds', 0.5, 0.95), ''],
  ]],
  ['Speculation', [
    ['Tokens a pass', 'timeseries', 'short', [[`sum by (instance) (${rate('redline_generation_tokens_total')}) / sum by (instance) (${rate('redline_steps_total')})`, by_instance]], 'Of all answers together: the gain from speculation and batching'],
    ['Drafts accepted, by source', 'timeseries', 'percentunit', [[`sum by (source) (${rate('redline_spec_accepted_total')}) / (sum by (source) (${rate('redline_spec_drafted_total')}) > 0)`, '{{source}}']], ''],
    ['Draft tokens looked at', 'timeseries', 'short', [[`sum by (source) (${rate('redline_spec_drafted_total')})`, '{{source}}']], 'A second'],
    ['Copied by edit programs', 'timeseries', 'short', [[`sum(${rate('redline_copied_forced_total')})`, 'tokens a second']], 'Without verification'],
  ]],
  ['The target model', [
    ['Busy', 'timeseries', 'percentunit', [[`sum by (instance) (${rate('redline_step_seconds_total')})`, by_instance]], 'Share of time in forward passes'],
    ['Rows a pass', 'timeseries', 'short', [[`sum by (instance) (${rate('redline_rows_total')}) / sum by (instance) (${rate('redline_steps_total')})`, by_instance]], ''],
    ['Batch fill', 'timeseries', 'percentunit', [[`redline_batch_fill{${of}}`, by_instance]], 'Decoding sequences in a pass, of those that were ready or asked while it ran'],
    ['Time of a pass', 'timeseries', 's', [[`sum by (instance) (${rate('redline_step_seconds_total')}) / sum by (instance) (${rate('redline_steps_total')})`, by_instance]], 'Mean'],
    ['Predictions are off by', 'timeseries', 'percentunit', [[`redline_cost_model_error_ratio{${of}}`, by_instance]], 'Mean of |predicted - measured| / measured'],
  ]],
  ['Memory of the model', [
    ['KV pages in use', 'timeseries', 'percentunit', [[`redline_kv_usage_ratio{${of}}`, by_instance]], ''],
    ['Prompt tokens found in the cache', 'timeseries', 'percentunit', [[`sum by (instance) (${rate('redline_cached_prompt_tokens_total')}) / (sum by (instance) (${rate('redline_queried_prompt_tokens_total')}) > 0)`, by_instance]], ''],
    ['Preempted', 'timeseries', 'short', [[`sum by (instance) (${rate('redline_preempted_total')})`, by_instance]], 'Answers per second that lost their KV'],
    ['Lengths', 'timeseries', 'short', [...quantiles('redline_request_prompt_tokens', 0.5).map(([q]) => [q, 'prompt p50']), ...quantiles('redline_request_prompt_tokens', 0.95).map(([q]) => [q, 'prompt p95']), ...quantiles('redline_request_generation_tokens', 0.95).map(([q]) => [q, 'answer p95'])], 'Tokens'],
  ]],
  ['Trouble', [
    ['Refused', 'timeseries', 'reqps', [[`sum by (status, code) (${rate('redline_refused_total')}) > 0`, '{{status}} {{code}}']], ''],
    ['Responses by class', 'timeseries', 'reqps', [[`sum by (status) (${rate('redline_http_responses_total')})`, '{{status}}']], ''],
    ['Longest handler', 'timeseries', 's', [[`max by (actor) (redline_handler_seconds_max{${of}})`, '{{actor}}']], 'How long an actor occupied its thread'],
    ['Undelivered messages', 'timeseries', 'short', [[`sum by (reason) (${rate('redline_undelivered_messages_total')})`, '{{reason}}']], 'Unreachable ones are normal when an answer has ended'],
  ]],
  ['Process', [
    ['Memory', 'timeseries', 'bytes', [[`process_resident_memory_bytes{${of}}`, by_instance]], ''],
    ['Processor', 'timeseries', 'short', [[`rate(process_cpu_seconds_total{${of}}[$__rate_interval])`, by_instance]], 'Cores'],
    ['Descriptors', 'timeseries', 'short', [[`process_open_fds{${of}}`, by_instance]], ''],
    ['Version', 'table', 'short', [[`redline_build_info{${of}}`, '']], ''],
  ]],
];

const source = { type: 'prometheus', uid: '${source}' };
let id = 0;
let y = 0;
const panels = [];
for (const [title, list] of rows) {
  panels.push({ id: ++id, type: 'row', title, collapsed: false, gridPos: { h: 1, w: 24, x: 0, y }, panels: [] });
  ++y;
  list.forEach(([name, type, unit, queries, description], i) => {
    panels.push({
      id: ++id, type, title: name, description, datasource: source, gridPos: { h: 7, w: 6, x: 6 * i, y },
      fieldConfig: { defaults: { unit, min: 0, custom: type === 'timeseries' ? { fillOpacity: 8, lineWidth: 1, showPoints: 'never' } : {} }, overrides: [] },
      options: type === 'timeseries' ? { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } } : {},
      targets: queries.map(([expr, legendFormat], n) => ({ refId: String.fromCharCode(65 + n), datasource: source, expr, legendFormat, instant: type === 'table', format: type === 'table' ? 'table' : 'time_series' })),
    });
  });
  y += 7;
}

const variable = (name, label, query) => ({ name, label, type: 'query', datasource: source, query: { query, refId: name }, refresh: 2, includeAll: true, multi: true, allValue: '.*', current: { text: 'All', value: '$__all' } });
console.log(JSON.stringify({
  title: 'Redline', uid: 'redline', tags: ['redline'], schemaVersion: 39, version: 1, editable: true, timezone: 'browser', refresh: '15s', time: { from: 'now-1h', to: 'now' },
  templating: { list: [
    { name: 'source', label: 'Prometheus', type: 'datasource', query: 'prometheus', current: {} },
    variable('job', 'Job', 'label_values(redline_ready, job)'),
    variable('instance', 'Server', 'label_values(redline_ready{job=~"$job"}, instance)'),
  ] },
  panels,
}, null, 1));
