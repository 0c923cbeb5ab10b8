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

/// The messages that processes of a pool exchange, and what they mean. Raised with every change of either, an appended
/// field too, because nothing tests processes of two versions with each other: whoever speaks another one is refused at
/// hello. (`actor::wire_version` is of the envelope alone: frames of another one are not read at all.) A test fails
/// when the bytes of such a message change and this does not: tests/actors/node/pool_rules_test.cpp.
inline constexpr std::uint32_t pool_protocol = 3;

/// What a process does in a pool.
enum class process_role : std::uint8_t {
  gateway,  // HTTP and sessions; runs no large model
  worker,   // a target model, a draft model or both
  last_,
};

/// Which tenants may reuse the KV of each other's prompt prefixes. Sharing tells, through the time to the first token,
/// what others asked lately.
enum class prefix_sharing : std::uint8_t { off, tenant, all, last_ };
inline constexpr std::array<std::string_view, 3> prefix_sharing_names = {"off", "tenant", "all"};

/// What a process says of itself before anything else, and again when it changes. A broker keeps it, and shows it to
/// those that may work with the process; they compare it with what they know.
struct process_card {
  process_role role = process_role::worker;
  std::string version;
  std::string host;
  std::string name;                  // of the model for clients; workers only, like all that follows
  std::vector<std::string> aliases;  // other names that clients may use
  bool has_target = false;
  bool has_draft = false;
  std::uint64_t model = 0;        // digest of the target model's file; see gguf::compute_file_digest
  std::uint64_t header = 0;       // digest of its header, which gateways ask for (`read_header`)
  std::uint64_t vocabulary = 0;   // digest of the tokenizer of target or draft model
  std::string numerics;           // what decides the bits of its answers: how products are computed, KV type, version
  std::uint32_t context = 0;      // most tokens of a sequence
  std::uint32_t running_max = 0;  // answers in computation at once
  std::uint32_t waiting_max = 0;  // and that may wait for that
  std::uint32_t pages_count = 0;  // of its KV pool
  std::uint32_t threads = 0;      // compute threads
  bool is_draining = false;       // it takes no new answers, and wants those that it has to go elsewhere
  prefix_sharing sharing = prefix_sharing::tenant;
  std::int64_t since = 0;      // when it started, in Unix milliseconds; 0: a version that does not say it
  std::string label;           // by which people know this process, such as "host:pid"; need not be its own alone
  std::uint32_t protocol = 0;  // pool_protocol; 0: a version that does not say it
  bool operator==(const process_card&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.role, self.version, self.host, self.name, self.aliases, self.has_target, self.has_draft,
                    self.model, self.header, self.vocabulary, self.numerics, self.context, self.running_max,
                    self.waiting_max, self.pages_count, self.threads, self.is_draining, self.sharing, self.since,
                    self.label, self.protocol);
  }
};

/// A label as logs and terminals may show it: of other bytes than letters, digits and . _ - : + nothing is left but
/// '?', and of a long one the beginning.
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

/// A part of it, at most a mebibyte. Without bytes: the worker has another header.
struct header_part {
  static constexpr actor::message_id id{0x0a11};
  static constexpr std::string_view name = "header_part";

  std::uint64_t header = 0;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;  // bytes of the whole header
  std::string bytes;
  static constexpr auto fields(auto& self) { return std::tie(self.header, self.offset, self.total, self.bytes); }
};

/// Has a gateway serve a worker's model: its header is fetched from the worker's header server. Sent again for each
/// worker that has the model, so that there is another to ask.
struct fetch_model {
  static constexpr actor::message_id id{0x0a12};
  static constexpr std::string_view name = "fetch_model";

  process_card card;
  actor::address source;
  static constexpr auto fields(auto& self) { return std::tie(self.card, self.source); }
};

// 0x0a13 was `model_known`.

/// Has a gateway serve this model no longer: no worker has it. With numerics: others have it, but none of this kind.
struct lose_model {
  static constexpr actor::message_id id{0x0a14};
  static constexpr std::string_view name = "lose_model";

  std::uint64_t model = 0;
  std::string numerics;
  static constexpr auto fields(auto& self) { return std::tie(self.model, self.numerics); }
};

/// By what right a model has its names: whether it has workers that take work, and since when the longest of them runs.
/// A name that two models claim belongs to the one that was there before.
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

/// Asks where in the pool an answer is made. Answered with `session_placed`, as often as the place changes until
/// `leave_place`, or with `no_place`. Asked again: the worker of before is of no use to the session, or the placer may
/// have forgotten.
struct place_session {
  static constexpr actor::message_id id{0x0a01};
  static constexpr std::string_view name = "place_session";

  session_id session;
  std::uint64_t model = 0;       // digest of the target model's file
  numerics_id numerics;          // of the answer so far; not known: any
  std::uint64_t affinity = 0;    // answers of one number belong together; 0: none
  std::uint32_t tokens_max = 0;  // that its sequence can come to hold
  std::uint32_t prompt_tokens = 0;
  std::vector<std::uint64_t> prefixes;    // chain_prefixes of the prompt
  bool wants_draft = false;               // by a draft model
  actor::process_number not_process = 0;  // which could not be reached, or refused
  tenant_id scope;                        // prompts of one scope share prefixes
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.model, self.numerics, self.affinity, self.tokens_max, self.prompt_tokens,
                    self.prefixes, self.wants_draft, self.not_process, self.scope);
  }
};

/// The session is to go on with these. Its own log is all that they need.
struct session_placed {
  static constexpr actor::message_id id{0x0a02};
  static constexpr std::string_view name = "session_placed";

  session_id session;
  actor::address manager;
  actor::address drafter;  // nobody: there is none, or none was wanted
  numerics_id numerics;    // of the answer; from its first token on it stays
  bool ask_again = false;  // what the cache manager was sent may be lost
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.manager, self.drafter, self.numerics, self.ask_again);
  }
};

/// There was no worker for the answer for as long as may be waited.
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

/// The placer to itself: answers wait for a place, and what came in meanwhile has been heard.
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
