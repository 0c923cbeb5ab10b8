#include "actors/commands/local_runner.hpp"

#include <future>
#include <mutex>
#include <optional>

namespace redline::actors::commands {

/// What the generation in work comes to. A fatal failure may come at any time and outlasts it.
class local_runner::answer {
 public:
  std::future<result<session_finished>> expect() {
    const std::scoped_lock lock(mutex_);
    promise_.emplace();
    auto waits = promise_->get_future();
    if (fatal_) promise_->set_value(*fatal_), promise_.reset();
    return waits;
  }
  void give(const session_finished& m) {
    const std::scoped_lock lock(mutex_);
    if (promise_) promise_->set_value(m), promise_.reset();
  }
  void break_down(const failure& why) {
    const std::scoped_lock lock(mutex_);
    if (!fatal_) fatal_ = why;
    if (promise_) promise_->set_value(*fatal_), promise_.reset();
  }

 private:
  std::mutex mutex_;
  std::optional<std::promise<result<session_finished>>> promise_;
  std::optional<failure> fatal_;
};

local_runner::local_runner() : answer_(std::make_shared<answer>()), desk_(std::make_shared<local_client::desk>()) {}

local_runner::~local_runner() {
  if (engine_) engine_->stop();
}

result<std::unique_ptr<local_runner>> local_runner::create(engine_options options) {
  std::unique_ptr<local_runner> r(new local_runner);
  options.scheduling.limits.running_max = 1;
  options.on_fatal = [into = r->answer_](const std::string& why) { into->break_down({errc::internal, why}); };
  REDLINE_TRY_ASSIGN(r->engine_, engine::create(std::move(options)));
  r->client_ = r->engine_->io()
                   .add<local_client>(
                       place::client, "client", {4096, 4096},
                       [jobs = r->desk_](actor::actor_context& c) { return std::make_unique<local_client>(c, jobs); })
                   .where;
  return r;
}

result<outcome> local_runner::run(generation_request request, const draft::draft_options& how,
                                  const std::function<void(const session_text&)>& on_text) {
  request.session = {++generations_};
  request.context_max = engine_->context_max();
  request.draft = how;
  REDLINE_TRY_ASSIGN(const auto partners, engine_->partners_for(how.how, {}));
  REDLINE_TRY_ASSIGN(auto work, generation::make(std::move(request), engine_->words()));
  if (!started_) {
    REDLINE_TRY(engine_->start());
    started_ = true;
  }
  outcome out;
  auto waits = answer_->expect();
  desk_->put(std::make_shared<local_client::job>(
      local_client::job{std::move(work), partners,
                        [&](const session_text& m) {
                          out.text += m.text;
                          out.tokens.insert(out.tokens.end(), m.tokens.begin(), m.tokens.end());
                          on_text(m);
                        },
                        [into = answer_](const session_finished& m) { into->give(m); }}));
  engine_->send(client_, begin_local{});
  const auto last = waits.get();
  if (!last) {
    engine_->stop();  // whoever still has something to say about this generation must not reach `out`
    return last.error();
  }
  if (last->why_not) return *last->why_not;
  out.reason = last->reason;
  out.stats = last->stats;
  out.copied = last->copied;
  return out;
}

}  // namespace redline::actors::commands
