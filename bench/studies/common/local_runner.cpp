#include "bench/studies/common/local_runner.hpp"

#include <future>
#include <map>
#include <mutex>
#include <optional>

namespace redline::studies {

/// Collects the results of the running generations. A fatal failure may come at any time and outlasts them.
class local_runner::answers {
 public:
  std::future<result<session_finished>> expect(session_id session) {
    const std::scoped_lock lock(mutex_);
    std::promise<result<session_finished>> promise;
    auto waits = promise.get_future();
    if (fatal_)
      promise.set_value(*fatal_);
    else
      open_.emplace(session, std::move(promise));
    return waits;
  }
  void give(const session_finished& m) {
    const std::scoped_lock lock(mutex_);
    const auto found = open_.extract(m.session);
    if (!found.empty()) found.mapped().set_value(m);
  }
  void break_down(const failure& why) {
    const std::scoped_lock lock(mutex_);
    if (!fatal_) fatal_ = why;
    for (auto& [session, promise] : open_) promise.set_value(*fatal_);
    open_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<session_id, std::promise<result<session_finished>>> open_;
  std::optional<failure> fatal_;
};

local_runner::local_runner()
    : answers_(std::make_shared<answers>()), job_queue_(std::make_shared<local_client::job_queue>()) {}

local_runner::~local_runner() {
  if (engine_) engine_->stop();
}

result<std::unique_ptr<local_runner>> local_runner::create(engine_options options, std::uint32_t users) {
  std::unique_ptr<local_runner> r(new local_runner);
  options.scheduling.limits.running_max = users;
  options.shows_memory = false;  // only servers show it
  options.on_fatal = [into = r->answers_](const std::string& why) { into->break_down({errc::internal, why}); };
  REDLINE_TRY_ASSIGN(r->engine_, engine::create(std::move(options)));
  r->client_ = r->engine_->io()
                   .add<local_client>(topology::client, "client", {4096, 4096},
                                      [jobs = r->job_queue_](actor::actor_context& c) {
                                        return std::make_unique<local_client>(c, jobs);
                                      })
                   .where;
  return r;
}

result<outcome> local_runner::run(generation_spec request, const draft::draft_options& how,
                                  const std::function<void(const session_text&)>& on_text) {
  REDLINE_TRY_ASSIGN(auto all, run_all({std::move(request)}, how, on_text));
  return std::move(all.front());
}

result<std::vector<result<outcome>>> local_runner::run_each(
    std::vector<generation_spec> requests, const draft::draft_options& how,
    const std::function<void(std::size_t, const session_text&)>& on_text) {
  std::vector<outcome> all(requests.size());
  std::vector<std::optional<failure>> why_not(requests.size());
  std::vector<std::pair<std::size_t, local_client::job>> jobs;
  REDLINE_TRY_ASSIGN(const auto partners, engine_->partners_for(how.how, {}));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].session = {++generations_};
    requests[i].context_max = engine_->context_max();
    requests[i].draft = how;
    auto work = token_log::make(std::move(requests[i]), engine_->tokenizer());
    if (!work) {
      why_not[i] = work.error();
      continue;
    }
    jobs.emplace_back(i, local_client::job{std::move(*work), partners,
                                           [&out = all[i], &on_text, i](const session_text& m) {
                                             out.text += m.text;
                                             out.tokens.insert(out.tokens.end(), m.tokens.begin(), m.tokens.end());
                                             if (on_text) on_text(i, m);
                                           },
                                           [into = answers_](const session_finished& m) { into->give(m); }});
  }
  if (!started_) {
    REDLINE_TRY(engine_->start());
    started_ = true;
  }
  std::vector<std::pair<std::size_t, std::future<result<session_finished>>>> waits;
  for (auto& [i, job] : jobs) {
    waits.emplace_back(i, answers_->expect(job.work.spec().session));
    job_queue_->put(std::move(job));
  }
  engine_->send(client_, begin_local{});
  for (auto& [i, wait] : waits) {
    const auto last = wait.get();
    if (!last) {
      engine_->stop();  // first, because running actors report to `all`
      return last.error();
    }
    why_not[i] = last->why_not;
    all[i].reason = last->reason;
    all[i].stats = last->stats;
    all[i].copied = last->copied;
  }
  std::vector<result<outcome>> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (why_not[i])
      out.emplace_back(*why_not[i]);
    else
      out.emplace_back(std::move(all[i]));
  }
  return out;
}

result<std::vector<outcome>> local_runner::run_all(std::vector<generation_spec> requests,
                                                   const draft::draft_options& how,
                                                   const std::function<void(const session_text&)>& on_text) {
  const auto tell = [&](std::size_t, const session_text& m) {
    if (on_text) on_text(m);
  };
  REDLINE_TRY_ASSIGN(auto each, run_each(std::move(requests), how, tell));
  std::vector<outcome> all;
  for (result<outcome>& one : each) {
    if (!one) return one.error();
    all.push_back(std::move(*one));
  }
  return all;
}

}  // namespace redline::studies
