#pragma once

#include <memory>

#include "actors/messages/session_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/draft/book.hpp"

namespace redline::actors {

/// Takes apart the book of an answer that is over, a part in each handler: the index of 100,000 tokens has 200,000
/// blocks of memory, and freeing them at once would delay others by 20 to 65 ms.
class retired_book final : public actor::actor_of<retired_book> {
 public:
  using accepts = actor::protocol<session_step>;

  /// book: its log has been dropped. It no longer reads its sources, so what they refer to may be gone.
  retired_book(actor::actor_context& context, std::unique_ptr<draft::book> book)
      : actor_of(context), book_(std::move(book)) {}

  void on_start() { context().after(microseconds{0}, session_step{}); }
  void on(const session_step&) {
    if (!book_->catch_up()) return context().stop();
    context().after(microseconds{0}, session_step{});
  }

 private:
  std::unique_ptr<draft::book> book_;
};

}  // namespace redline::actors
