#include "actors/cli/lsp/call_runner.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace redline::actors::cli::lsp {

call_runner::call_runner() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const auto add = [this](lane& of, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this, &of] { run(of); });
  };
  add(syncs_, sync_threads);
  add(completions_, completion_threads);
  add(edits_, edit_threads);
}

call_runner::~call_runner() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    for (auto& [ticket, one] : jobs_) one->given_up = true;
  }
  for (lane* one : {&syncs_, &completions_, &edits_}) one->more.notify_all();
  for (std::thread& one : threads_) one.join();
  ::close(descriptor_);
}

void call_runner::set_server(server_address at) {
  const std::scoped_lock lock(mutex_);
  calls_.emplace(std::move(at));
}

void call_runner::forget_server() {
  const std::scoped_lock lock(mutex_);
  calls_.reset();
}

void call_runner::wake() const {
  const std::uint64_t one = 1;
  // A failed write means that the counter is full, so the descriptor is already readable.
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
}

void call_runner::start(std::uint64_t ticket, server_call what) {
  const bool completes = std::holds_alternative<complete_call>(what) || std::holds_alternative<next_edit_call>(what);
  lane& to = completes ? completions_ : std::holds_alternative<edit_call>(what) ? edits_ : syncs_;
  auto made = std::make_shared<job>();
  made->ticket = ticket;
  made->what = std::move(what);
  {
    const std::scoped_lock lock(mutex_);
    jobs_[ticket] = made;
    to.waiting.push_back(std::move(made));
  }
  to.more.notify_one();
}

void call_runner::give_up(std::uint64_t ticket) {
  const std::scoped_lock lock(mutex_);
  if (const auto at = jobs_.find(ticket); at != jobs_.end()) at->second->given_up = true;
}

void call_runner::tell(event e) {
  {
    const std::scoped_lock lock(mutex_);
    if (!e.reply) {
      const auto at =
          std::find_if(events_.begin(), events_.end(), [&](const event& other) { return other.ticket == e.ticket; });
      if (at != events_.end()) {
        at->bytes = e.bytes;
        return;
      }
    } else {
      jobs_.erase(e.ticket);
    }
    events_.push_back(std::move(e));
  }
  wake();
}

std::vector<call_runner::event> call_runner::take_events() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(descriptor_, &count, sizeof count);
  const std::scoped_lock lock(mutex_);
  return std::exchange(events_, {});
}

void call_runner::run(lane& from) {
  std::unique_lock lock(mutex_);
  for (;;) {
    from.more.wait(lock, [&] { return ends_ || !from.waiting.empty(); });
    if (ends_) return;
    const auto next = std::move(from.waiting.front());
    from.waiting.pop_front();
    const auto calls = calls_;
    lock.unlock();
    server_reply reply;
    if (next->given_up || !calls)
      reply.what = server_reply::kind::cancelled;
    else
      reply = calls->make(next->what, next->given_up, [&](std::size_t bytes) { tell({next->ticket, {}, bytes}); });
    tell({next->ticket, std::move(reply), 0});
    lock.lock();
  }
}

}  // namespace redline::actors::cli::lsp
