#include "runtime/trace/tracer.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace redline::trace {
namespace {

// The number of bits of a trace id that W3C defines as random.
constexpr int random_bits = 56;

}  // namespace

tracer::tracer(std::size_t spans_max, double root_ratio)
    : spans_max_(spans_max),
      least_sampled_(static_cast<std::uint64_t>(std::ldexp(1 - std::clamp(root_ratio, 0.0, 1.0), random_bits))) {}

bool tracer::samples(const span_context& root) const {
  return (root.trace_low & ((std::uint64_t{1} << random_bits) - 1)) >= least_sampled_;
}

void tracer::push(span&& ended) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= spans_max_ || stopped_) {
      ++dropped_;
      return;
    }
    queue_.push_back(std::move(ended));
    if (wanted_ == 0 || queue_.size() < wanted_) return;
  }
  arrived_.notify_one();
}

std::vector<span> tracer::take(std::size_t count_max, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  wanted_ = count_max;
  arrived_.wait_for(lock, patience, [&] { return stopped_ || queue_.size() >= count_max; });
  wanted_ = 0;
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(count_max, queue_.size()));
  std::vector<span> out(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  return out;
}

void tracer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  arrived_.notify_all();
}

bool tracer::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

namespace {

std::uint64_t draw_id(environment& env) {
  std::uint64_t id = 0;
  while (id == 0) id = env.random();
  return id;
}

}  // namespace

open_span::open_span(const std::shared_ptr<tracer>& to, environment& env, const span_context& parent, std::string name,
                     span_kind kind) {
  if (!to || !parent) return;
  state_.reset(new state{to, env, {.where = parent, .parent = parent.span, .name = std::move(name), .kind = kind}});
  state_->content.where.span = draw_id(env);
  state_->content.begin = env.now();
}

open_span open_span::root(const std::shared_ptr<tracer>& to, environment& env, std::string name, span_kind kind) {
  if (!to) return {};
  const span_context place{.trace_high = draw_id(env), .trace_low = draw_id(env), .span = 1};
  if (!to->samples(place)) return {};
  open_span out(to, env, place, std::move(name), kind);
  out.state_->content.parent = 0;
  return out;
}

open_span& open_span::operator=(open_span&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

open_span::~open_span() {
  if (!state_) return;
  fail("it was abandoned");
  end();
}

void open_span::set(std::string_view key, attribute_value value) {
  if (state_) state_->content.attributes.push_back({key, std::move(value)});
}

void open_span::add_event(std::string_view name, std::vector<attribute> attributes) {
  if (!state_) return;
  auto& s = state_->content;
  if (s.events.size() < span_events_max)
    s.events.push_back({state_->env.now(), name, std::move(attributes)});
  else
    ++s.events_dropped;
}

void open_span::fail(std::string problem) {
  if (!state_) return;
  state_->content.has_failed = true;
  state_->content.problem = std::move(problem);
}

void open_span::end() {
  const auto ended = std::exchange(state_, nullptr);
  if (!ended) return;
  ended->content.end = ended->env.now();
  ended->to->push(std::move(ended->content));
}

}  // namespace redline::trace
