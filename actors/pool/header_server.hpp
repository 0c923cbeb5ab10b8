#pragma once

#include <memory>
#include <string>

#include "actors/messages/pool_messages.hpp"
#include "runtime/actor/worker.hpp"

namespace redline::actors {

/// Sends gateways the header of a worker's target model, part by part. Stateless: each request is complete in itself.
class header_server final : public actor::actor_of<header_server> {
 public:
  using accepts = actor::protocol<read_header>;

  /// header: from `gguf_file::copy_header`; outlives restarts of the actor.
  header_server(actor::actor_context& context, std::shared_ptr<const std::string> header);

  void on(const read_header& m);

 private:
  std::shared_ptr<const std::string> header_;
  std::uint64_t digest_;
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::header_server>;
