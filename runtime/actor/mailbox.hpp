#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

namespace redline::actor {

/// Capacity for messages that wait for one actor.
struct mailbox_limits {
  std::size_t control_max = 4096;
  std::size_t data_max = 4096;
};

/// Two bounded lanes: control goes before data, each in order of arrival. Used by one thread.
template<class T>
class mailbox {
 public:
  explicit mailbox(mailbox_limits limits) : limits_(limits) {}

  /// Returns false if the lane is full, without taking the item.
  [[nodiscard]] bool push(T item, bool control) {
    if (!has_room(control)) return false;
    (control ? control_ : data_).push_back(std::move(item));
    return true;
  }
  [[nodiscard]] bool has_room(bool control) const {
    return control ? control_.size() < limits_.control_max : data_.size() < limits_.data_max;
  }

  std::optional<T> pop() {
    std::optional<T> next;
    auto& lane = control_.empty() ? data_ : control_;
    if (lane.empty()) return next;
    next.emplace(std::move(lane.front()));
    lane.pop_front();
    return next;
  }

  [[nodiscard]] std::size_t size() const { return control_.size() + data_.size(); }
  [[nodiscard]] bool empty() const { return control_.empty() && data_.empty(); }

 private:
  mailbox_limits limits_;
  std::deque<T> control_;
  std::deque<T> data_;
};

}  // namespace redline::actor
