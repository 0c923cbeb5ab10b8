#include "actors/pool/header_server.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/size_limits.hpp"
#include "runtime/gguf/file_digest.hpp"

namespace redline::actors {

header_server::header_server(actor::actor_context& context, std::shared_ptr<const std::string> header)
    : actor_of(context), header_(std::move(header)), digest_(gguf::compute_header_digest(*header_)) {}

void header_server::on(const read_header& m) {
  header_part part{.header = m.header, .offset = m.offset};
  if (m.header == digest_) {
    part.total = header_->size();
    if (m.offset < header_->size()) part.bytes = header_->substr(m.offset, sizes::header_part_bytes_max);
  }
  context().send(context().sender(), part);
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::header_server>;
