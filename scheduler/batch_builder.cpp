#include "scheduler/batch_builder.hpp"

#include <algorithm>
#include <optional>
#include <queue>

namespace redline::scheduler {
namespace {

constexpr std::uint32_t passes_missed_max = 3;

/// The cost inputs of one more row in a run that already has `before` tokens computed or planned.
cost::work_size size_of_draft_token(std::uint64_t before) { return {1, before + 1, 1, 1}; }

/// The most rows that keep the pass within its time, found by bisection: cost grows with rows.
std::uint32_t rows_in_time(const work_item& item, std::uint32_t wanted, const cost::work_size& so_far,
                           const cost::cost_model& cost, microseconds time_max) {
  const auto fits_in_time = [&](std::uint32_t rows) {
    const bool logits = item.wants_logits && rows == item.pending_count;
    return cost.predict(so_far + cost::size_of_run(item.computed_count, rows, logits ? 1 : 0)) <= time_max;
  };
  if (fits_in_time(wanted)) return wanted;
  std::uint32_t fits = 0;
  std::uint32_t high = wanted;
  while (fits + 1 < high) {
    const std::uint32_t middle = fits + (high - fits) / 2;
    (fits_in_time(middle) ? fits : high) = middle;
  }
  return fits;
}

double chance_of(std::span<const cost::draft_segment> segments, std::uint32_t place) {
  for (const cost::draft_segment& s : segments) {
    if (place < s.count) return s.chance();
    place -= s.count;
  }
  return 1;
}

/// The part of the budget that one prompt chunk may use.
struct share {
  std::uint32_t rows = 0;
  kv::amount memory;
  microseconds until{0};    // predicted time of the whole pass
  std::uint32_t least = 0;  // rows to take whatever they cost
};

/// The plan under construction.
struct builder {
  const budget& limits;
  const cost::cost_model& cost;
  batch_plan plan;
  std::vector<const work_item*> items;  // parallel to the plan's runs
  std::uint32_t rows_left;
  std::uint32_t logits_left;
  kv::amount memory_left;
  microseconds time_max{0};  // limit of this pass

  std::vector<const work_item*> take_decodes(std::span<const work_item* const> decodes, const share& of);
  void take_prompts(std::span<const work_item* const> prompts);
  void take_scored();
  void take_drafts();

 private:
  std::optional<limit> take_log(const work_item& item, const share& of);
  void leave(const work_item& item, limit why) { plan.left.push_back({item.sequence, why}); }
  [[nodiscard]] kv::amount memory_for_next(std::size_t run) const;
  [[nodiscard]] bool has_room_for_draft(std::size_t run) const;
  void add_draft_token(std::size_t run);
};

/// nullopt if the item is in the plan.
std::optional<limit> builder::take_log(const work_item& item, const share& of) {
  std::uint32_t rows = std::min({item.pending_count, limits.prompt_chunk_rows_max, of.rows, rows_left});
  if (rows == 0) return limit::rows;
  rows = std::min({rows, item.growth.tokens_within(of.memory), item.growth.tokens_within(memory_left)});
  if (rows == 0) return limit::memory;
  rows = std::min(rows, std::max(rows_in_time(item, rows, plan.size, cost, of.until), of.least));
  if (rows == 0) return limit::time;
  bool logits = item.wants_logits && rows == item.pending_count;
  if (logits && logits_left == 0) return limit::rows;
  // A prompt that is scored advances by at least one token of its draft.
  const bool scores = logits && item.scores_draft && item.draft_count > 0;
  if (scores) {
    const bool has_rows = rows_left > rows && logits_left > 1;
    const bool has_memory = item.growth.taken_by(rows + 1).fits(memory_left);
    if (!has_rows || !has_memory) {
      if (rows == 1) return has_rows ? limit::memory : limit::rows;
      --rows;
      logits = false;
    }
  }
  plan.runs.push_back({.sequence = item.sequence,
                       .tenant = item.facts.tenant,
                       .first = item.computed_count,
                       .log_count = rows,
                       .wants_logits = logits});
  items.push_back(&item);
  plan.size = plan.size + cost::size_of_run(item.computed_count, rows, logits ? 1 : 0);
  rows_left -= rows;
  logits_left -= logits ? 1 : 0;
  memory_left -= item.growth.taken_by(rows);
  if (scores && logits) add_draft_token(plan.runs.size() - 1);
  return std::nullopt;
}

/// Returns the items that did not fit.
std::vector<const work_item*> builder::take_decodes(std::span<const work_item* const> decodes, const share& of) {
  std::vector<const work_item*> left;
  for (const work_item* each : decodes) {
    const auto taken = static_cast<std::uint32_t>(plan.size.rows);
    const share mine{.rows = of.rows - std::min(of.rows, taken),
                     .memory = of.memory,
                     .until = of.until,
                     .least = taken < limits.rows_min ? 1U : 0U};
    if (take_log(*each, mine)) left.push_back(each);
  }
  return left;
}

/// Every prompt takes a chunk, in order. Prompts that need less than half of what the first one needs may precede it,
/// with at most half of the prompts' budget: a short prompt does not wait for a long one, and the long one still
/// advances.
void builder::take_prompts(std::span<const work_item* const> prompts) {
  const work_item& first = *prompts.front();
  std::vector<const work_item*> shorter;
  for (const work_item* each : prompts) {
    if (each->pending_count < first.pending_count / 2) shorter.push_back(each);
  }
  std::stable_sort(shorter.begin(), shorter.end(),
                   [](const work_item* a, const work_item* b) { return a->pending_count < b->pending_count; });
  const std::uint32_t kept_rows = (rows_left + 1) / 2;
  const kv::amount kept_memory = first.growth.taken_by(std::min(first.pending_count, limits.prompt_chunk_rows_max));
  const microseconds before = cost.predict(plan.size);
  const microseconds half = before + std::max(time_max - before, microseconds{0}) / 2;
  std::vector<const work_item*> waiting(prompts.begin(), prompts.end());
  for (const work_item* each : shorter) {
    const share beside_first{
        .rows = rows_left - std::min(rows_left, kept_rows), .memory = memory_left - kept_memory, .until = half};
    if (!take_log(*each, beside_first)) std::erase(waiting, each);
  }
  for (const work_item* each : waiting) {
    const share rest{.rows = rows_left, .memory = memory_left, .until = time_max, .least = each == &first ? 1U : 0U};
    if (const auto why_not = take_log(*each, rest)) leave(*each, *why_not);
  }
}

/// The memory that one more row of the run takes.
kv::amount builder::memory_for_next(std::size_t run) const {
  const std::uint32_t rows = plan.runs[run].rows();
  return items[run]->growth.taken_by(rows + 1) - items[run]->growth.taken_by(rows);
}

bool builder::has_room_for_draft(std::size_t run) const {
  const planned_run& r = plan.runs[run];
  const std::uint32_t most = std::min(items[run]->draft_count, items[run]->growth.drafts_max);
  if (r.draft_count >= most || rows_left == 0 || logits_left == 0) return false;
  return memory_for_next(run).fits(memory_left);
}

void builder::add_draft_token(std::size_t run) {
  planned_run& r = plan.runs[run];
  plan.size = plan.size + size_of_draft_token(r.first + r.rows());
  --rows_left;
  --logits_left;
  memory_left -= memory_for_next(run);
  ++r.draft_count;
}

/// Adds the draft tokens of scored prompts, whose log-probabilities are wanted, up to the size of a chunk.
void builder::take_scored() {
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (!items[i]->scores_draft || !plan.runs[i].wants_logits) continue;
    while (plan.runs[i].rows() < limits.prompt_chunk_rows_max && has_room_for_draft(i)) {
      const cost::work_size one = size_of_draft_token(plan.runs[i].first + plan.runs[i].rows());
      if (cost.predict(plan.size + one) > time_max) break;
      add_draft_token(i);
    }
  }
}

/// A draft's next token: the chance that it and all before it are accepted, and that chance divided by its time.
struct candidate {
  std::size_t run = 0;
  double chance = 1;
  double worth = 0;
  bool operator<(const candidate& other) const {  // on a tie the earlier run goes first
    return worth != other.worth ? worth < other.worth : run > other.run;
  }
};

/// Adds tokens one by one, best first, and remembers where tokens per microsecond were highest. The curve need not be
/// concave, so a token that does not pay does not end the search. Tokens added after the best point are removed at the
/// end.
void builder::take_drafts() {
  // Only the time of rows that yield tokens counts. A prompt chunk in the same pass is owed to its own session and must
  // not make a draft look cheap.
  cost::work_size decoding;
  double tokens = 0;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const planned_run& r = plan.runs[i];
    if (!r.wants_logits || items[i]->scores_draft) continue;
    decoding = decoding + cost::size_of_run(r.first + r.log_count - 1, 1, 1);
    tokens += 1;
  }
  if (tokens == 0) return;

  const auto us = [&](const cost::work_size& size) {
    return std::max<double>(static_cast<double>(cost.predict(size).count()), 1);
  };
  const double base_us = us(decoding);
  std::priority_queue<candidate> best;
  const auto offer = [&](candidate c) {
    const work_item& item = *items[c.run];
    const planned_run& r = plan.runs[c.run];
    if (r.draft_count >= item.draft_count) return;
    c.chance *= chance_of(item.segments, r.draft_count);
    const double takes = us(decoding + size_of_draft_token(r.first + r.rows())) - base_us;
    c.worth = c.chance / std::max(takes, 1e-3);
    best.push(c);
  };
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (plan.runs[i].wants_logits && !items[i]->scores_draft) offer({.run = i});
  }

  struct addition {
    std::size_t run = 0;
    double us = 0;      // of the decoding rows with this token
    double tokens = 0;  // expected with it
  };
  std::vector<addition> added;
  std::size_t worth_adding = 0;
  double highest = tokens / base_us;
  while (!best.empty()) {
    const candidate c = best.top();
    best.pop();
    if (!has_room_for_draft(c.run)) continue;
    const cost::work_size one = size_of_draft_token(plan.runs[c.run].first + plan.runs[c.run].rows());
    // The limit protects sequences that wait meanwhile; none waits when a lone sequence has the pass to itself.
    const bool alone = plan.runs.size() == 1 && plan.left.empty();
    const bool timely = alone || cost.predict(plan.size + one) <= time_max;
    if (!timely) break;
    decoding = decoding + one;
    tokens += c.chance;
    add_draft_token(c.run);
    added.push_back({c.run, us(decoding), tokens});
    const double rate = tokens / added.back().us;
    if (limits.whole_drafts || cost.is_unmeasured() || rate >= highest) {
      highest = rate;
      worth_adding = added.size();
    }
    offer(c);
  }
  for (std::size_t count = added.size(); count > worth_adding; --count) {
    const addition& last = added[count - 1];
    const auto allowed = limits.trials.allowed(plan.size.rows - (added.size() - count));
    const double lost = last.us - last.tokens / highest;
    if (lost > static_cast<double>(allowed.count())) continue;
    worth_adding = count;
    plan.lost = microseconds{static_cast<std::int64_t>(std::max(lost, 0.0))};
  }
  plan.drafts_cut = static_cast<std::uint32_t>(added.size() - worth_adding);
  while (added.size() > worth_adding) {
    planned_run& r = plan.runs[added.back().run];
    --r.draft_count;
    const cost::work_size last = size_of_draft_token(r.first + r.rows());
    plan.size = {plan.size.rows - last.rows, plan.size.pairs - last.pairs, plan.size.context - last.context,
                 plan.size.logits - last.logits};
    added.pop_back();
  }
}

/// The time that a pass may take. Three one-row passes are always allowed: a single row already costs the reading of
/// all weights, so two thirds of such a pass remain for more rows, and smaller passes would only mean more of them.
/// Every pass also looks slow on a machine that is busy with something else.
microseconds time_allowed(const budget& limits, const cost::cost_model& cost) {
  const cost::work_size one_row{.rows = 1, .pairs = 1, .context = 1, .logits = 1};
  return std::max(limits.time_max, cost.predict(one_row) * 3);
}

}  // namespace

batch_plan build_batch(std::span<const work_item> items, std::span<const item_index> best_first, const budget& limits,
                       const cost::cost_model& cost) {
  builder b{.limits = limits,
            .cost = cost,
            .plan = {},
            .items = {},
            .rows_left = limits.rows_max,
            .logits_left = limits.logits_max,
            .memory_left = limits.free};
  std::vector<const work_item*> decodes;
  std::vector<const work_item*> prompts;
  for (const item_index index : best_first) (items[index].decodes() ? decodes : prompts).push_back(&items[index]);
  const microseconds allowed = time_allowed(limits, cost);
  const share all{.rows = limits.rows_max, .memory = limits.free, .until = allowed};
  share first = all;
  if (!prompts.empty()) {
    // A quarter is for prompts. If that is less than a row, a prompt still gets a row now and then.
    const bool starves = prompts.front()->missed_count >= passes_missed_max;
    first.rows -= std::max(limits.rows_max / 4, starves ? 1U : 0U);
    first.until = allowed * 3 / 4;
  }
  decodes = b.take_decodes(decodes, first);
  b.time_max = allowed;
  if (!prompts.empty()) {
    // A third more than the decodes take, so that prompts get their quarter even if decodes alone exceed the limit.
    b.time_max = std::max(allowed, cost.predict(b.plan.size) * 4 / 3);
    b.take_prompts(prompts);
    decodes = b.take_decodes(decodes, all);
  }
  for (const work_item* each : decodes) {
    const bool rows = b.rows_left == 0;
    const std::uint32_t least = each->scores_draft && each->draft_count > 0 ? 2 : 1;
    const bool has_memory = each->growth.taken_by(least).fits(b.memory_left);
    b.plan.left.push_back({each->sequence, rows ? limit::rows : has_memory ? limit::time : limit::memory});
  }
  b.take_scored();
  b.take_drafts();
  b.plan.predicted = cost.predict(b.plan.size);
  return std::move(b.plan);
}

}  // namespace redline::scheduler
