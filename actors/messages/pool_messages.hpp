#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/messages/numerics_id.hpp"
#include "runtime/actor/address.hpp"
#include "runtime/actor/protocol.hpp"
#include "runtime/base/ids.hpp"

namespace redline::actors {

/// The version of what processes of a pool send each other, and of its meaning, such as the tables of a grammar in
/// which a state counts. Raised with every change to either, even an appended field, because nothing tests two versions
/// with each other: a process with a different one is refused at hello. (`actor::wire_version` covers only the
/// envelope: frames of another one are not read at all.) A test fails when the bytes of such a message change and this
/// does not: tests/actors/node/pool_rules_test.cpp.
inline constexpr std::uint32_t pool_protocol = 8;

/// What a process does in a pool.
enum class process_role : std::uint8_t {
  gateway,  // HTTP and sessions; runs no large model
  worker,   // a target model, a draft model or both
  last_,
};

/// Which tenants may reuse the KV of each other's prompt prefixes. Sharing reveals, through the time to the first
/// token, what others asked recently.
enum class prefix_sharing : std::uint8_t { off, tenant, all, last_ };
inline constexpr std::array<std::string_view, 3> prefix_sharing_names = {"off", "tenant", "all"};

/// What a process reports about itself before anything else, and again when it changes. A broker stores the card and
/// shows it to the processes that may work with this one; they compare it with what they know.
struct process_card {
  process_role role = process_role::worker;
  std::string version;
  std::string host;
  std::string name;                  // the model's name for clients; this and all that follows: workers only
  std::vector<std::string> aliases;  // other names that clients may use
  bool has_target = false;
  bool has_draft = false;
  std::uint64_t model = 0;        // digest of the target model's file; see gguf::compute_file_digest
  std::uint64_t header = 0;       // digest of its header, which gateways ask for (`read_header`)
  std::uint64_t vocabulary = 0;   // digest of the tokenizer of target or draft model
  std::string numerics;           // what decides the bits of its answers: how products are computed, KV type, version
  std::uint32_t context = 0;      // most tokens in a sequence
  std::uint32_t running_max = 0;  // answers computed at once
  std::uint32_t waiting_max = 0;  // answers that may wait for that
  std::uint32_t pages_count = 0;  // size of its KV pool
  std::uint32_t threads = 0;      // compute threads
  bool is_draining = false;       // it takes no new answers, and those that it has should go elsewhere
  prefix_sharing sharing = prefix_sharing::tenant;
  std::int64_t since = 0;      // when it started, in Unix milliseconds; 0 from a version that does not report it
  std::string label;           // name that people know this process by, such as "host:pid"; need not be unique
  std::uint32_t protocol = 0;  // pool_protocol; 0 from a version that does not report it
  bool operator==(const process_card&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.role, self.version, self.host, self.name, self.aliases, self.has_target, self.has_draft,
                    self.model, self.header, self.vocabulary, self.numerics, self.context, self.running_max,
                    self.waiting_max, self.pages_count, self.threads, self.is_draining, self.sharing, self.since,
                    self.label, self.protocol);
  }
};

/// A label made safe for logs and terminals: at most 64 bytes, of which others than letters, digits and . _ - : +
/// become '?'.
inline std::string shown_label(std::string_view label) {
  constexpr std::size_t bytes_max = 64;
  std::string out(label.substr(0, bytes_max));
  for (char& c : out) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                          c == '_' || c == '-' || c == ':' || c == '+';
    if (!is_plain) c = '?';
  }
  return out;
}

/// Asks a worker for a part of its target model's header: GGUF's metadata without tensors.
struct read_header {
  static constexpr actor::message_id id{0x0a10};
  static constexpr std::string_view name = "read_header";

  std::uint64_t header = 0;  // its digest
  std::uint64_t offset = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.header, self.offset); }
};

/// A part of the header, at most a mebibyte; no bytes when the worker has a different header.
struct header_part {
  static constexpr actor::message_id id{0x0a11};
  static constexpr std::string_view name = "header_part";

  std::uint64_t header = 0;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;  // bytes of the whole header
  std::string bytes;
  static constexpr auto fields(auto& self) { return std::tie(self.header, self.offset, self.total, self.bytes); }
};

/// Makes a gateway serve a worker's model, whose header is fetched from the worker's header server. Sent again for each
/// worker that has the model, so that there is another one to ask.
struct fetch_model {
  static constexpr actor::message_id id{0x0a12};
  static constexpr std::string_view name = "fetch_model";

  process_card card;
  actor::address source;
  static constexpr auto fields(auto& self) { return std::tie(self.card, self.source); }
};

// 0x0a13 was `model_known`.

/// Makes a gateway stop serving this model, which no worker has; or, with numerics, which no worker of these has.
struct lose_model {
  static constexpr actor::message_id id{0x0a14};
  static constexpr std::string_view name = "lose_model";

  std::uint64_t model = 0;
  std::string numerics;
  static constexpr auto fields(auto& self) { return std::tie(self.model, self.numerics); }
};

/// What a model's claim to its names rests on: whether workers take work for it, and since when the oldest of them
/// runs. A name that two models claim belongs to the one that was there first.
struct model_standing {
  static constexpr actor::message_id id{0x0a16};
  static constexpr std::string_view name = "model_standing";

  std::uint64_t model = 0;
  bool has_workers = false;
  std::int64_t since = 0;  // process_card::since
  bool operator==(const model_standing&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.model, self.has_workers, self.since); }
};

/// A fetcher's reminder that a part of a header, or another try, is due.
struct fetch_due {
  static constexpr actor::message_id id{0x0a15};
  static constexpr std::string_view name = "fetch_due";

  std::uint64_t header = 0;
  std::uint64_t attempt = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.header, self.attempt); }
};

/// Asks which worker of the pool computes an answer. Answered with `session_placed`, again after each change until
/// `leave_place`, or with `no_place`. Asked again when the session's worker is unusable, or the placer may have
/// forgotten it.
struct place_session {
  static constexpr actor::message_id id{0x0a01};
  static constexpr std::string_view name = "place_session";

  session_id session;
  std::uint64_t model = 0;       // digest of the target model's file
  numerics_id numerics;          // numerics of the answer so far; any if unknown
  std::uint64_t affinity = 0;    // answers with the same number belong together; 0 means none
  std::uint32_t tokens_max = 0;  // most tokens that its sequence can reach
  std::uint32_t prompt_tokens = 0;
  std::vector<std::uint64_t> prefixes;    // chain_prefixes of the prompt
  bool wants_draft = false;               // drafts from a draft model
  actor::process_number not_process = 0;  // could not be reached, or refused
  tenant_id scope;                        // prompts of one scope share prefixes
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.model, self.numerics, self.affinity, self.tokens_max, self.prompt_tokens,
                    self.prefixes, self.wants_draft, self.not_process, self.scope);
  }
};

/// The session is to go on with these actors. Its own log is all that they need.
struct session_placed {
  static constexpr actor::message_id id{0x0a02};
  static constexpr std::string_view name = "session_placed";

  session_id session;
  actor::address manager;
  actor::address drafter;  // null if there is none, or none was wanted
  numerics_id numerics;    // numerics of the answer; fixed from its first token on
  bool ask_again = false;  // what was sent to the cache manager may be lost
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.manager, self.drafter, self.numerics, self.ask_again);
  }
};

/// No worker was found for the answer within the time that it may wait.
struct no_place {
  static constexpr actor::message_id id{0x0a03};
  static constexpr std::string_view name = "no_place";

  session_id session;
  failure why;
  std::uint32_t retry_after_ms = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.session, self.why, self.retry_after_ms); }
};

/// The session is over.
struct leave_place {
  static constexpr actor::message_id id{0x0a04};
  static constexpr std::string_view name = "leave_place";

  session_id session;
  static constexpr auto fields(auto& self) { return std::tie(self.session); }
};

/// The placer to itself: answers wait for a worker, and all messages that came in meanwhile have been handled.
struct places_due {
  static constexpr actor::message_id id{0x0a06};
  static constexpr std::string_view name = "places_due";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The placer's own heartbeat.
struct placer_tick {
  static constexpr actor::message_id id{0x0a05};
  static constexpr std::string_view name = "placer_tick";
  static constexpr auto fields(auto&) { return std::tie(); }
};

}  // namespace redline::actors
