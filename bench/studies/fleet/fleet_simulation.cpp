#include "bench/studies/fleet/fleet_simulation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <queue>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "bench/studies/common/statistics.hpp"
#include "bench/studies/fleet/fleet_placer.hpp"
#include "runtime/base/philox.hpp"

namespace redline::studies {
namespace {

constexpr std::int64_t second_us = 1'000'000;
constexpr std::int64_t tick_us = 250'000;  // period of placers and of links
constexpr std::uint32_t ticks_per_kept = 4;
constexpr std::int64_t patience_us = 20 * second_us;
constexpr std::int64_t herd_us = 100'000;
constexpr std::uint32_t places_refused_max = 8;
constexpr std::uint32_t width_min = 8;
constexpr std::uint32_t long_rows = 1'500;  // a prompt that others may have to wait for
constexpr std::uint32_t short_rows = 512;   // a prompt that should not have to wait
constexpr double long_prompt_share = 0.03;  // share of the first turns
constexpr double turns_mean = 8;            // turns of a conversation
constexpr double pass_noise = 0.05;
constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();

/// The behavior of a tenant's users. The token counts are means.
struct use_kind {
  std::uint32_t shared;  // tokens with which all prompts of the tenant begin
  std::uint32_t first;   // further tokens of the first prompt
  std::uint32_t next;    // tokens of each later question
  std::uint32_t answer;
  std::uint32_t draft_max;
  float chance;  // how probably a draft token is right
  double think;  // thinking time relative to the mean of all
};
constexpr std::array<use_kind, 3> kinds = {{
    {512, 900, 150, 160, 32, 0.9F, 1.0},   // edits: much is copied
    {256, 250, 80, 200, 8, 0.6F, 1.2},     // chat
    {768, 1200, 400, 80, 16, 0.75F, 0.8},  // agents: long prompts, short answers
}};
const use_kind& kind_of(std::uint32_t tenant) { return kinds[tenant % kinds.size()]; }

enum class happens : std::uint8_t { ask, arrive, refused, pass_end, kill, detect, restart, tick };

struct event {
  std::int64_t at = 0;
  std::uint64_t order = 0;  // of events at the same time, the one planned first comes first
  happens what = happens::ask;
  std::uint32_t who = 0;
  std::uint32_t which = 0;  // which process start or which message
  bool operator>(const event& other) const { return std::tie(at, order) > std::tie(other.at, other.order); }
};

struct user {
  std::uint32_t tenant = 0;
  std::uint32_t gateway = 0;
  std::uint32_t answers = 0;
  std::uint32_t conversation = 0;
  std::uint32_t log_tokens = 0;  // tokens of the conversation's earlier turns
  // Where these tokens were computed:
  std::uint32_t home = nobody;
  std::uint32_t home_start_id = 0;
  // The current answer:
  bool is_active = false;
  std::uint32_t worker = nobody;
  std::uint32_t moves = 0;  // anything sent before the last move is void
  bool must_tell_all = true;
  std::uint32_t prompt = 0, answer = 0, emitted = 0, round = 0, drafted = 0, width = 0;
  std::uint32_t gained = 0;  // tokens gained by the pass that ends
  std::uint32_t refusals = 0;
  std::vector<std::uint32_t> not_these;
  std::int64_t asked_at = 0, first_at = 0, heard_at = 0, longest_pause = 0;
  std::int64_t waiting_since = -1;
  std::int64_t lost_at = -1;
  std::uint32_t rows_lost = 0;
  std::uint32_t rows_known = 0;  // rows of earlier turns that some worker has
  bool home_is_lost = false;
  bool is_long = false, is_short = false, is_after_long = false;
};

struct machine {
  std::unique_ptr<fleet_worker> worker;  // null if it is down
  std::uint32_t start_id = 0;
  std::set<std::uint32_t> guests;  // users whose answers run here
  std::int64_t pass_took = 0;
  std::int64_t busy_us = 0;
  std::uint32_t long_open = 0;  // long prompts without a first token so far
  std::int64_t herd_began = -herd_us;
  std::uint32_t herd = 0;
  std::uint64_t rows_before = 0, preempted_before = 0;  // values at the start of the measurement
};

struct door {
  std::unique_ptr<fleet_placer> placer;
  std::vector<std::uint32_t> waiting;
  std::vector<std::uint8_t> knows;  // by worker: whether it has reported
  struct totals {
    std::uint64_t batches = 0, rows = 0, us = 0;
    double row_us = 0, pass_us = 0;
  };
  std::vector<totals> before;                // by worker
  std::vector<std::uint64_t> kept_revision;  // by worker
  std::uint32_t ticks = 0;
  std::uint64_t choices = 0;
};

value_spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {values.size(),          mean(values),           percentile(values, 50),
          percentile(values, 95), percentile(values, 99), *std::max_element(values.begin(), values.end())};
}

class fleet {
 public:
  fleet(const fleet_options& options, const pass_curve& curve)
      : options_(options), curve_(curve), truth_(fit_pass_curve(curve)) {}

  result<fleet_result> run();

 private:
  enum class draws : std::uint32_t {
    tenant,
    start,
    prompt,
    next,
    answer,
    think,
    turn,
    token,
    loss,
    pass,
    place,
    length
  };

  double draw(draws what, std::uint64_t who, std::uint32_t number) const {
    return draw_word(what, who, number) / 4294967296.0;
  }
  std::uint32_t draw_word(draws what, std::uint64_t who, std::uint32_t number) const {
    const std::array<std::uint32_t, 4> place{static_cast<std::uint32_t>(who), static_cast<std::uint32_t>(who >> 32),
                                             number, static_cast<std::uint32_t>(what)};
    return philox4x32(place,
                      {static_cast<std::uint32_t>(options_.seed), static_cast<std::uint32_t>(options_.seed >> 32)})[0];
  }
  static double exponential(double u) { return -std::log(1 - u); }

  void plan_event(std::int64_t at, happens what, std::uint32_t who, std::uint32_t which = 0) {
    events_.push({at, ++events_count_, what, who, which});
  }
  [[nodiscard]] instant clock() const { return instant{microseconds{now_}}; }
  [[nodiscard]] bool is_measuring() const { return now_ >= warm_us_; }
  [[nodiscard]] std::int64_t hops() const { return 2 * static_cast<std::int64_t>(options_.hop_us); }
  void carry(carried what, std::uint32_t tokens, std::uint64_t count = 1);

  result<void> build();
  void handle(const event& e);
  void begin_measuring();
  void ask(std::uint32_t who);
  bool place(std::uint32_t who);
  void wait(std::uint32_t who);
  void fail(std::uint32_t who);
  void think(std::uint32_t who, std::int64_t from);
  void send_round(std::uint32_t who, std::int64_t at);
  void arrive(std::uint32_t who);
  void note_first_arrival(user& u, machine& m, std::uint32_t tail, std::uint32_t cached);
  void be_refused(std::uint32_t who);
  void kick(std::uint32_t number);
  void end_pass(std::uint32_t number);
  void commit(std::uint32_t who, std::uint32_t tokens, std::uint32_t verified);
  void finish(std::uint32_t who, std::int64_t at);
  void note_times(const user& u, std::int64_t at);
  void kill();
  void lose(std::uint32_t number);
  void detect(std::uint32_t number);
  void tick(std::uint32_t gateway);
  void ask_kept(door& d, std::uint32_t worker);
  void note_herd(machine& m);
  fleet_result summarize();
  void judge_fairness(fleet_result& r) const;
  [[nodiscard]] std::uint64_t conversation_number(std::uint32_t who) const {
    return std::uint64_t{who} << 32 | users_[who].conversation;
  }
  [[nodiscard]] static std::uint64_t shared_number(std::uint32_t tenant) { return std::uint64_t{1} << 63 | tenant; }
  [[nodiscard]] fleet_worker::prompt_kinship kin_of(std::uint32_t who) const {
    const std::uint32_t tenant = users_[who].tenant;
    return {conversation_number(who), shared_number(tenant), kind_of(tenant).shared};
  }
  [[nodiscard]] std::unique_ptr<fleet_worker> make_worker(std::uint32_t number) const {
    const std::uint64_t start_id = std::uint64_t{machines_[number].start_id} * options_.workers + number;
    return std::make_unique<fleet_worker>(options_.limits, curve_, start_id);
  }
  [[nodiscard]] sequence_id sequence_of(std::uint32_t who) const {
    return {std::uint64_t{users_[who].answers} << 32 | who};
  }
  void find_prefixes(std::uint32_t who, std::uint32_t tokens);

  const fleet_options& options_;
  const pass_curve& curve_;
  cost::cost_model truth_;
  message_sizes sizes_;
  std::vector<user> users_;
  std::vector<machine> machines_;
  std::vector<door> doors_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::uint64_t events_count_ = 0;
  std::int64_t now_ = 0, warm_us_ = 0, end_us_ = 0;
  bool has_begun_ = false;
  std::uint32_t kills_ = 0;
  std::vector<std::uint64_t> prefixes_;  // prefixes of the prompt that is being placed
  std::vector<scheduler::run_answer> answers_;

  fleet_result out_;
  std::vector<std::uint64_t> messages_by_second_;
  std::vector<double> bytes_by_second_;
  std::vector<double> first_token_, per_token_, pause_, stall_, short_alone_, short_after_long_;
  struct tenant_figures {
    std::uint64_t answers = 0;
    double first_token_ms = 0, tokens_per_second = 0;  // sums
  };
  std::vector<tenant_figures> tenants_;
  std::uint64_t herds_ = 0, herded_ = 0;
};

// ---- the world -----------------------------------------------------------------------------------------------------

result<void> fleet::build() {
  end_us_ = std::llround(options_.minutes * 60 * second_us);
  warm_us_ = end_us_ / 4;
  messages_by_second_.resize(static_cast<std::size_t>(end_us_ / second_us) + 1);
  bytes_by_second_.resize(messages_by_second_.size());
  tenants_.resize(options_.tenants);
  std::vector<double> tenant_ends;
  double sum = 0;
  for (std::uint32_t t = 0; t < options_.tenants; ++t) tenant_ends.push_back(sum += 1.0 / (t + 1));
  users_.resize(options_.sessions);
  for (std::uint32_t who = 0; who < options_.sessions; ++who) {
    user& u = users_[who];
    const double share = draw(draws::tenant, who, 0) * sum;
    u.tenant = static_cast<std::uint32_t>(std::lower_bound(tenant_ends.begin(), tenant_ends.end(), share) -
                                          tenant_ends.begin());
    u.gateway = who % options_.gateways;  // a client keeps its connection
    const double first = draw(draws::start, who, 0) * options_.think_seconds * kind_of(u.tenant).think;
    plan_event(std::llround(first * second_us), happens::ask, who);
  }
  machines_.resize(options_.workers);
  for (std::uint32_t w = 0; w < options_.workers; ++w) machines_[w].worker = make_worker(w);
  doors_.resize(options_.gateways);
  for (std::uint32_t g = 0; g < options_.gateways; ++g) {
    REDLINE_TRY_ASSIGN(doors_[g].placer, make_fleet_placer(options_.placement));
    doors_[g].knows.resize(options_.workers);
    doors_[g].before.resize(options_.workers);
    doors_[g].kept_revision.resize(options_.workers);
    plan_event(tick_us * g / options_.gateways, happens::tick, g);
  }
  const auto losses =
      static_cast<std::uint32_t>(std::llround(options_.loss_per_minute * options_.workers * options_.minutes));
  for (std::uint32_t i = 0; i < losses; ++i) {
    plan_event(static_cast<std::int64_t>(draw(draws::loss, i, 0) * static_cast<double>(end_us_)), happens::kill, 0);
  }
  if (options_.lose_one_for_good) plan_event(warm_us_ + (end_us_ - warm_us_) / 4, happens::kill, 0);
  return {};
}

result<fleet_result> fleet::run() {
  REDLINE_TRY(build());
  while (!events_.empty() && events_.top().at <= end_us_) {
    const event e = events_.top();
    events_.pop();
    now_ = e.at;
    if (is_measuring() && !std::exchange(has_begun_, true)) begin_measuring();
    handle(e);
  }
  return summarize();
}

void fleet::begin_measuring() {
  for (machine& m : machines_) {
    m.busy_us = 0;
    m.rows_before = m.worker ? m.worker->rows_total() : 0;
    m.preempted_before = m.worker ? m.worker->preempted_total() : 0;
  }
}

void fleet::handle(const event& e) {
  switch (e.what) {
    case happens::ask:
      return ask(e.who);
    case happens::arrive:
      if (e.which == users_[e.who].moves) arrive(e.who);
      return;
    case happens::refused:
      if (e.which == users_[e.who].moves) be_refused(e.who);
      return;
    case happens::pass_end:
      if (e.which == machines_[e.who].start_id) end_pass(e.who);
      return;
    case happens::kill:
      return kill();
    case happens::detect:
      return detect(e.who);
    case happens::restart:
      machines_[e.who].worker = make_worker(e.who);
      machines_[e.who].rows_before = machines_[e.who].preempted_before = 0;
      return carry(carried::member_news, 0, options_.gateways);
    case happens::tick:
      return tick(e.who);
  }
}

void fleet::carry(carried what, std::uint32_t tokens, std::uint64_t count) {
  if (!is_measuring()) return;
  const double each = sizes_.bytes(what, tokens);
  out_.carried_by_broker.add(what, count, each);
  const auto second = static_cast<std::size_t>(now_ / second_us);
  messages_by_second_[second] += count;
  bytes_by_second_[second] += each * static_cast<double>(count);
}

// ---- questions and placement ---------------------------------------------------------------------------------------

void fleet::ask(std::uint32_t who) {
  user& u = users_[who];
  const use_kind& kind = kind_of(u.tenant);
  const std::uint32_t n = ++u.answers;
  u.answer =
      8 + static_cast<std::uint32_t>(std::min(3.0, exponential(draw(draws::answer, who, n))) * (kind.answer - 8));
  const auto later = static_cast<std::uint32_t>((0.4 + 0.6 * exponential(draw(draws::next, who, n))) * kind.next);
  const std::uint32_t room = options_.limits.tokens_max - std::min(options_.limits.tokens_max / 2, u.answer);
  u.answer = std::min(u.answer, options_.limits.tokens_max - room);
  u.prompt = u.log_tokens + later;
  if (u.log_tokens == 0 || u.prompt > room || draw(draws::turn, who, n) < 1 / turns_mean) {
    ++u.conversation;
    u.log_tokens = 0;
    u.home = nobody;
    const double scale = draw(draws::length, who, n) < long_prompt_share ? 4 : 1;
    u.prompt = kind.shared +
               static_cast<std::uint32_t>((0.4 + 0.6 * exponential(draw(draws::prompt, who, n))) * kind.first * scale);
  }
  u.prompt = std::clamp(u.prompt, 2U, room);
  u.is_active = true;
  u.emitted = u.round = u.drafted = u.refusals = u.rows_lost = 0;
  u.width = kind.draft_max;
  u.not_these.clear();
  u.asked_at = u.heard_at = now_;
  u.first_at = u.longest_pause = 0;
  u.lost_at = u.waiting_since = -1;
  u.is_long = u.is_short = u.is_after_long = false;
  u.rows_known = u.home == nobody ? 0 : u.log_tokens;
  u.home_is_lost = u.home != nobody && (machines_[u.home].start_id != u.home_start_id || !machines_[u.home].worker);
  if (!place(who)) wait(who);
}

/// Makes keys like chain_prefixes and prefix_key: prompts of one conversation begin alike, and so do a tenant's.
void fleet::find_prefixes(std::uint32_t who, std::uint32_t tokens) {
  const auto kin = kin_of(who);
  prefixes_.clear();
  for (std::uint32_t b = 1; b <= tokens / prefix_block_tokens; ++b) prefixes_.push_back(kin.key_of(b));
}

bool fleet::place(std::uint32_t who) {
  user& u = users_[who];
  door& d = doors_[u.gateway];
  find_prefixes(who, u.prompt);
  scheduler::placement_question question{
      .affinity = (conversation_number(who) + 1) * 0x9e3779b97f4a7c15,
      .prompt_tokens = u.prompt,
      .prefixes = prefixes_,
      .random = draw_word(draws::place, u.gateway, static_cast<std::uint32_t>(++d.choices)),
      .may_be = {}};
  if (!u.not_these.empty()) {
    question.may_be = [&](scheduler::worker_number w) {
      return std::find(u.not_these.begin(), u.not_these.end(), w) == u.not_these.end();
    };
  }
  const auto chosen = d.placer->choose(question);
  if (!chosen) return false;
  if (is_measuring()) ++out_.placements;
  u.waiting_since = -1;
  u.worker = *chosen;
  u.must_tell_all = true;
  machine& m = machines_[*chosen];
  m.guests.insert(who);
  note_herd(m);
  send_round(who, now_ + hops());
  return true;
}

void fleet::note_herd(machine& m) {
  if (now_ - m.herd_began >= herd_us) {
    m.herd_began = now_;
    m.herd = 0;
    herds_ += is_measuring() ? 1 : 0;
  }
  ++m.herd;
  if (!is_measuring()) return;
  ++herded_;
  out_.herd_max = std::max(out_.herd_max, m.herd);
}

/// Sends the round's question, which reaches the worker at this time.
void fleet::send_round(std::uint32_t who, std::int64_t at) {
  user& u = users_[who];
  const std::uint32_t tail = u.must_tell_all ? u.prompt + u.emitted : 0;
  carry(carried::verify_run, tail + u.drafted);
  if (u.must_tell_all) {
    carry(carried::propose, tail);
    carry(carried::proposal, 0);
  }
  plan_event(at, happens::arrive, who, ++u.moves);
}

void fleet::wait(std::uint32_t who) {
  user& u = users_[who];
  u.worker = nobody;
  u.not_these.clear();
  if (u.waiting_since < 0) {
    u.waiting_since = now_;
    doors_[u.gateway].waiting.push_back(who);
  }
}

void fleet::fail(std::uint32_t who) {
  user& u = users_[who];
  if (is_measuring()) ++out_.failed;
  u.is_active = false;
  u.log_tokens = 0;
  think(who, now_);
}

void fleet::think(std::uint32_t who, std::int64_t from) {
  const user& u = users_[who];
  // The run represents one day, which begins and ends at night.
  const double phase = 2 * std::acos(-1.0) * static_cast<double>(from) / static_cast<double>(end_us_);
  const double rate = 1 - options_.diurnal * std::cos(phase);
  const double seconds = options_.think_seconds * kind_of(u.tenant).think *
                         exponential(draw(draws::think, who, u.answers)) / std::max(rate, 0.05);
  plan_event(from + std::llround(seconds * second_us), happens::ask, who);
}

// ---- rounds --------------------------------------------------------------------------------------------------------

void fleet::arrive(std::uint32_t who) {
  user& u = users_[who];
  machine& m = machines_[u.worker];
  if (!m.worker) return;  // the message is lost, and the placer will name another worker
  const use_kind& kind = kind_of(u.tenant);
  const std::uint32_t log = u.prompt + u.emitted;
  const std::uint32_t tail = u.must_tell_all ? log : 0;
  const auto taken = m.worker->submit({.sequence = sequence_of(who),
                                       .tenant = {u.tenant},
                                       .round = {++u.round},
                                       .from = log - tail,
                                       .tail = tail,
                                       .draft = u.drafted,
                                       .chance = kind.chance,
                                       .tokens_max = u.prompt + u.answer,
                                       .kin = kin_of(who)},
                                      clock());
  if (taken.outcome != scheduler::submit_outcome::taken) {
    if (is_measuring()) ++out_.refused;
    carry(carried::refused, 0);
    return plan_event(now_ + hops(), happens::refused, who, u.moves);
  }
  if (std::exchange(u.must_tell_all, false)) note_first_arrival(u, m, tail, taken.cached);
  kick(u.worker);
}

void fleet::note_first_arrival(user& u, machine& m, std::uint32_t tail, std::uint32_t cached) {
  const auto count = [&](std::uint64_t& where, std::uint32_t rows) {
    if (is_measuring() && rows > cached) where += rows - cached;
  };
  if (is_measuring()) out_.cached_tokens += cached;
  if (u.lost_at >= 0) {
    count(out_.rows_lost, std::exchange(u.rows_lost, 0));
  } else if (u.emitted == 0) {
    std::uint64_t& why = u.home_is_lost       ? out_.rows_forgotten
                         : u.home != u.worker ? out_.rows_elsewhere
                                              : out_.rows_evicted;
    count(why, std::exchange(u.rows_known, 0) / 32 * 32);
    u.is_short = tail - cached < short_rows;
    u.is_after_long = m.long_open > 0;
  }
  u.is_long = tail - cached >= long_rows;
  m.long_open += u.is_long ? 1 : 0;
}

void fleet::be_refused(std::uint32_t who) {
  user& u = users_[who];
  machines_[u.worker].guests.erase(who);
  doors_[u.gateway].placer->leave(u.worker);
  u.not_these.push_back(u.worker);
  if (++u.refusals > places_refused_max) return fail(who);
  if (!place(who)) wait(who);
}

void fleet::kick(std::uint32_t number) {
  machine& m = machines_[number];
  if (m.worker->is_busy()) return;
  const auto* plan = m.worker->begin_pass(clock());
  if (plan == nullptr) return;
  const double noise =
      1 + pass_noise * (2 * draw(draws::pass, number, static_cast<std::uint32_t>(m.worker->batches_total())) - 1);
  const double us = static_cast<double>(truth_.predict(plan->size).count()) * noise;
  m.pass_took = std::max<std::int64_t>(50, std::llround(us));
  plan_event(now_ + m.pass_took, happens::pass_end, number, m.start_id);
}

void fleet::end_pass(std::uint32_t number) {
  machine& m = machines_[number];
  m.busy_us += m.pass_took;
  const auto& runs = m.worker->plan().runs;
  answers_.resize(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto who = static_cast<std::uint32_t>(runs[i].sequence.value);
    user& u = users_[who];
    std::uint32_t right = 0;
    while (right < runs[i].draft_count &&
           draw(draws::token, runs[i].sequence.value, u.emitted + right) < kind_of(u.tenant).chance) {
      ++right;
    }
    answers_[i].accepted_count = right;
    answers_[i].tokens.assign(runs[i].wants_logits ? right + 1 : 0, 0);
    u.gained = right + 1;
  }
  for (const auto& done : m.worker->end_pass(answers_, microseconds{m.pass_took}, clock())) {
    const auto who = static_cast<std::uint32_t>(done.sequence.value);
    commit(who, users_[who].gained, done.verified_count);
  }
  kick(number);
}

/// Applies the answer as the session does; it reaches the session a little later.
void fleet::commit(std::uint32_t who, std::uint32_t tokens, std::uint32_t verified) {
  user& u = users_[who];
  const std::int64_t heard = now_ + hops();
  carry(carried::verified, tokens);
  if (is_measuring()) {
    ++out_.rounds;
    out_.tokens += tokens;
  }
  if (std::exchange(u.is_long, false)) --machines_[u.worker].long_open;
  if (u.lost_at >= 0) {
    if (is_measuring()) stall_.push_back(static_cast<double>(heard - u.lost_at) / 1000);
    u.lost_at = -1;
  }
  if (u.emitted == 0) {
    u.first_at = heard;
  } else {
    u.longest_pause = std::max(u.longest_pause, heard - u.heard_at);
  }
  u.heard_at = heard;
  u.emitted += tokens;
  if (u.emitted >= u.answer) return finish(who, heard);
  if (verified > 0) u.width = std::clamp(2 * verified, width_min, std::max(width_min, kind_of(u.tenant).draft_max));
  u.drafted = std::min({u.width, kind_of(u.tenant).draft_max, u.answer - u.emitted - 1});
  std::int64_t at = heard + hops();
  if (u.drafted > 0) {
    carry(carried::propose, tokens);
    carry(carried::proposal, u.drafted);
    at += 2 * hops() + options_.draft_us;
  }
  send_round(who, at);
}

void fleet::finish(std::uint32_t who, std::int64_t at) {
  user& u = users_[who];
  machine& m = machines_[u.worker];
  carry(carried::release, 0, 2);
  m.worker->release(sequence_of(who));
  m.guests.erase(who);
  doors_[u.gateway].placer->leave(u.worker);
  u.log_tokens = u.prompt + u.emitted;
  u.home = u.worker;
  u.home_start_id = m.start_id;
  u.is_active = false;
  if (is_measuring()) {
    ++out_.answers;
    note_times(u, at);
  }
  think(who, at);
}

/// Notes the times of an answer that ends or that is unfinished at the end of the run.
void fleet::note_times(const user& u, std::int64_t at) {
  if (u.emitted == 0) return first_token_.push_back(static_cast<double>(at - u.asked_at) / 1000);
  const double first = static_cast<double>(u.first_at - u.asked_at) / 1000;
  const double rest = static_cast<double>(at - u.first_at) / 1000;
  first_token_.push_back(first);
  if (u.emitted > 1) per_token_.push_back(rest / (u.emitted - 1));
  if (u.longest_pause > 0) pause_.push_back(static_cast<double>(u.longest_pause) / 1000);
  if (u.is_short) (u.is_after_long ? short_after_long_ : short_alone_).push_back(first);
  auto& tenant = tenants_[u.tenant];
  ++tenant.answers;
  tenant.first_token_ms += first;
  tenant.tokens_per_second += ratio(u.emitted - 1.0, rest / 1000);
}

// ---- losses --------------------------------------------------------------------------------------------------------

void fleet::kill() {
  std::vector<std::uint32_t> up;
  for (std::uint32_t w = 0; w < machines_.size(); ++w) {
    if (machines_[w].worker) up.push_back(w);
  }
  if (!up.empty()) lose(up[draw_word(draws::loss, ++kills_, 1) % up.size()]);
}

void fleet::lose(std::uint32_t number) {
  machine& m = machines_[number];
  if (is_measuring()) {
    ++out_.losses;
    out_.rows += m.worker->rows_total() - m.rows_before;
    out_.preempted += m.worker->preempted_total() - m.preempted_before;
  }
  for (const std::uint32_t who : m.guests) {
    user& u = users_[who];
    if (u.lost_at < 0) u.lost_at = now_;
    u.rows_lost = std::max(u.rows_lost, m.worker->computed_count(sequence_of(who)));
    u.is_long = false;
  }
  m.worker.reset();
  ++m.start_id;
  m.long_open = 0;
  m.pass_took = 0;
  const std::int64_t detected = now_ + std::int64_t{options_.detect_ms} * 1000 + hops();
  plan_event(detected, happens::detect, number);
  if (options_.lose_one_for_good) return;
  plan_event(std::max(detected + 1, now_ + std::lround(options_.restart_seconds * second_us)), happens::restart,
             number);
}

/// The brokers notify all gateways, whose sessions move elsewhere at once.
void fleet::detect(std::uint32_t number) {
  machine& m = machines_[number];
  carry(carried::member_news, 0, options_.gateways);
  for (door& d : doors_) {
    d.placer->remove(number);
    d.knows[number] = 0;
  }
  const auto guests = std::exchange(m.guests, {});
  for (const std::uint32_t who : guests) {
    if (is_measuring()) ++out_.moved_answers;
    if (!place(who)) wait(who);
  }
}

/// The placer asks the workers for their state and retries the answers that wait.
void fleet::tick(std::uint32_t gateway) {
  door& d = doors_[gateway];
  plan_event(now_ + tick_us, happens::tick, gateway);
  ++d.ticks;
  std::uint64_t asked = 0;
  for (std::uint32_t w = 0; w < machines_.size(); ++w) {
    const machine& m = machines_[w];
    if (!m.worker) continue;
    ++asked;
    auto& before = d.before[w];
    fleet_worker& worker = *m.worker;
    const bool is_new = !std::exchange(d.knows[w], 1);
    if (is_new) before = {};
    if (worker.batches_total() > before.batches && worker.rows_total() > before.rows) {
      const auto us = static_cast<double>(worker.forward_us_total() - before.us);
      before.row_us = us / static_cast<double>(worker.rows_total() - before.rows);
      before.pass_us = us / static_cast<double>(worker.batches_total() - before.batches);
    }
    before.batches = worker.batches_total();
    before.rows = worker.rows_total();
    before.us = worker.forward_us_total();
    d.placer->note(w, {.takes_work = true,
                       .running = worker.running_count(),
                       .waiting = worker.waiting_count(),
                       .running_max = options_.limits.running_max,
                       .waiting_max = options_.limits.waiting_max,
                       .pending_rows = worker.pending_rows(),
                       .row_us = worker.prompt_row_us() > 0 ? worker.prompt_row_us() : before.row_us,
                       .pass_us = before.pass_us});
    if (is_new || d.ticks % ticks_per_kept == 0) ask_kept(d, w);
  }
  carry(carried::report_status, 0, asked);
  carry(carried::scheduler_report, 0, asked);
  carry(carried::beat, 0, 2);
  if (gateway == 0) carry(carried::beat, 0, 2 * asked);  // the workers' own heartbeats
  for (const std::uint32_t who : std::exchange(d.waiting, {})) {
    user& u = users_[who];
    if (place(who)) continue;
    if (now_ - u.waiting_since >= patience_us) {
      fail(who);
    } else {
      d.waiting.push_back(who);
    }
  }
}

/// Asks for the worker's cached prefixes, or for the changes since the last report.
void fleet::ask_kept(door& d, std::uint32_t worker) {
  const auto news = machines_[worker].worker->say_kept(d.kept_revision[worker], clock());
  d.kept_revision[worker] = news.revision;
  d.placer->learn(worker, {.is_all = news.is_all, .added = news.added, .dropped = news.dropped});
  carry(carried::read_kept, 0);
  carry(carried::kept_prefixes, static_cast<std::uint32_t>(news.added.size() + news.dropped.size()));
}

// ---- figures -------------------------------------------------------------------------------------------------------

void fleet::judge_fairness(fleet_result& r) const {
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    double sum = 0, squares = 0, count = 0, shortest = 0, longest = 0;
    for (std::size_t t = k; t < tenants_.size(); t += kinds.size()) {
      if (tenants_[t].answers == 0) continue;
      const double answers = static_cast<double>(tenants_[t].answers);
      const double speed = tenants_[t].tokens_per_second / answers;
      const double first = tenants_[t].first_token_ms / answers;
      sum += speed;
      squares += speed * speed;
      shortest = count == 0 ? first : std::min(shortest, first);
      longest = std::max(longest, first);
      ++count;
    }
    if (count == 0) continue;
    r.fairness = std::min(r.fairness, ratio(sum * sum, count * squares));
    r.first_token_ratio = std::max(r.first_token_ratio, ratio(longest, shortest));
  }
}

fleet_result fleet::summarize() {
  fleet_result r = std::move(out_);
  // Unfinished answers count too, because an overloaded pool would look good by the few that it answers.
  for (const user& u : users_) {
    if (!u.is_active) continue;
    ++r.unfinished;
    note_times(u, std::max(end_us_, u.heard_at));
  }
  r.measured_seconds = static_cast<double>(end_us_ - warm_us_) / second_us;
  double busy = 0;
  for (const machine& m : machines_) {
    busy += static_cast<double>(m.busy_us);
    if (!m.worker) continue;
    m.worker->check_integrity();
    r.rows += m.worker->rows_total() - m.rows_before;
    r.preempted += m.worker->preempted_total() - m.preempted_before;
  }
  r.busy_share = ratio(busy, static_cast<double>(end_us_ - warm_us_) * options_.workers);
  r.first_token_ms = spread_of(first_token_);
  r.time_per_token_ms = spread_of(per_token_);
  r.longest_pause_ms = spread_of(pause_);
  r.stall_ms = spread_of(stall_);
  r.short_alone_ms = spread_of(short_alone_);
  r.short_after_long_ms = spread_of(short_after_long_);
  for (std::size_t s = 0; s < messages_by_second_.size(); ++s) {
    r.messages_per_second_max = std::max(r.messages_per_second_max, static_cast<double>(messages_by_second_[s]));
    r.bytes_per_second_max = std::max(r.bytes_per_second_max, bytes_by_second_[s]);
  }
  r.herd_mean = ratio(static_cast<double>(herded_), static_cast<double>(herds_));
  judge_fairness(r);
  return r;
}

}  // namespace

result<fleet_result> simulate_fleet(const fleet_options& options, const pass_curve& curve) {
  return fleet(options, curve).run();
}

}  // namespace redline::studies
