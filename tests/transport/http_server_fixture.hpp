#pragma once

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/http_front.hpp"

namespace redline::transport {

/// An http_front on its own thread that records everything it reports. `serve` runs on that thread. A request's owner
/// is the number in its X-Owner header.
class http_server_fixture {
 public:
  using serve = std::function<void(http_front&, exchange_id, http_request)>;

  static http_front::options quick_options() {
    http_front::options what;
    what.port = 0;
    return what;
  }

  explicit http_server_fixture(serve how, http_front::options what = quick_options()) : serve_(std::move(how)) {
    http_front::handlers whom;
    whom.on_request = [this](exchange_id id, http_request request) {
      note([&] { requests_.push_back(request); });
      note([&] { ids_.push_back(id); });
      if (serve_) serve_(*front_, id, std::move(request));
    };
    whom.on_closed = [this](exchange_id id) { note([&] { closed_.push_back(id); }); };
    whom.on_flow = [this](exchange_id id, bool paused) {
      note([&] { flow_.push_back(paused); });
      if (on_flow) on_flow(*front_, id, paused);
    };
    whom.owner_of = [](const http_front::header_finder& header) -> std::uint64_t {
      const auto owner = header("x-owner");
      return owner ? std::stoull(std::string(*owner)) : 0;
    };
    auto made = http_front::listen(io_, std::move(what), std::move(whom));
    EXPECT_TRUE(made) << made.error().describe();
    front_ = std::move(*made);
    port_ = front_->port();
    thread_ = std::thread([this] { io_.run(); });
  }

  ~http_server_fixture() {
    on_server([](http_front& front) { front.close_all(); });
    work_.reset();
    thread_.join();
  }

  /// Runs `act` on the server's thread and waits for its end.
  void on_server(const std::function<void(http_front&)>& act) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      act(*front_);
      done.set_value();
    });
    done.get_future().wait();
  }

  /// Returns true as soon as `holds` does, or false after ten seconds.
  bool wait_until(const std::function<bool()>& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), holds);
  }
  bool wait_for_requests(std::size_t count) {
    return wait_until([&] { return requests_.size() >= count; });
  }
  bool wait_for_closed(std::size_t count) {
    return wait_until([&] { return closed_.size() >= count; });
  }
  bool wait_for_flow(std::size_t count) {
    return wait_until([&] { return flow_.size() >= count; });
  }

  std::uint16_t port() const { return port_; }
  std::vector<http_request> requests() { return locked(requests_); }
  std::vector<exchange_id> ids() { return locked(ids_); }
  std::vector<exchange_id> closed() { return locked(closed_); }
  std::vector<bool> flow() { return locked(flow_); }
  std::size_t open_exchanges() {
    std::size_t count = 0;
    on_server([&](http_front& front) { count = front.open_exchanges(); });
    return count;
  }
  /// The last byte of an answer may reach the client before the server knows that it was sent.
  bool wait_for_open_exchanges(std::size_t count) {
    for (int n = 0; n < 1000; ++n) {
      if (open_exchanges() == count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  boost::asio::io_context& io() { return io_; }

  std::function<void(http_front&, exchange_id, bool)> on_flow;  // must be set before the first request

 private:
  template<class Act>
  void note(Act act) {
    const std::lock_guard lock(mutex_);
    act();
    changed_.notify_all();
  }
  template<class List>
  List locked(const List& list) {
    const std::lock_guard lock(mutex_);
    return list;
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  serve serve_;
  std::unique_ptr<http_front> front_;
  std::uint16_t port_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<http_request> requests_;
  std::vector<exchange_id> ids_, closed_;
  std::vector<bool> flow_;
};

}  // namespace redline::transport
