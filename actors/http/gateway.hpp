#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/editing/edit_session.hpp"
#include "actors/http/api_keys.hpp"
#include "actors/http/metrics.hpp"
#include "actors/http/openai/request.hpp"
#include "actors/http/openai/response.hpp"
#include "actors/messages/edit_messages.hpp"
#include "actors/messages/gateway_messages.hpp"
#include "actors/messages/http_messages.hpp"
#include "actors/messages/session_messages.hpp"
#include "actors/messages/status_messages.hpp"
#include "actors/serving/session.hpp"
#include "actors/serving/token_log.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/jinja/chat_template.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

namespace redline::actors {

/// What the gateway serves and whom it asks.
struct gateway_services {
  std::shared_ptr<const text::tokenizer> tokenizer;
  std::shared_ptr<const grammar::token_trie> token_trie;  // null: no grammars
  jinja::chat_template chat;
  std::string model_name;
  std::vector<std::string> aliases;
  bool accept_any_model = false;
  std::string fingerprint;  // build and model, for system_fingerprint
  std::uint32_t context_max = 0;
  draft::draft_options draft_defaults;  // for requests that leave the method to us
  kv::eviction_options eviction_defaults;
  std::function<result<session_partners>(draft::method, actor::address client)> partners_for;
  std::vector<actor::address> reporters;  // asked for status
  actor::address scheduler;               // whose process must be up
  actor::address http;
  api_keys keys;
  std::uint32_t sessions_max = 1024;  // answers in work
  api::edit_limits live;
  std::shared_ptr<metrics_registry> metrics;
  std::function<void()> on_drained;  // called once, when a drain has nothing left to wait for
};

/// Takes requests in and streams answers out: authenticates, checks, renders, tokenises, opens one session per answer,
/// and turns what the sessions say into OpenAI's shapes. Holds nothing that a client could not ask for again.
class gateway final : public actor::actor_of<gateway> {
 public:
  using accepts =
      actor::protocol<http_arrived, http_closed, http_flow, session_text, session_finished, scheduler_report,
                      draft_report, drain_gateway, cancel_everything, gateway_tick, edit_reply, edit_prompt_made,
                      edit_session_over, actor::actor_down, actor::peer_state, actor::undeliverable>;

  gateway(actor::actor_context& context, std::shared_ptr<const gateway_services> services);

  void on_start();
  void on(const http_arrived& m);
  void on(const http_closed& m);
  void on(const http_flow& m);
  void on(const session_text& m);
  void on(const session_finished& m);
  void on(const scheduler_report& m);
  void on(const draft_report& m);
  void on(const drain_gateway& m);
  void on(const cancel_everything& m);
  void on(const gateway_tick& m);
  void on(const edit_reply& m);
  void on(const edit_prompt_made& m);
  void on(const edit_session_over& m);
  void on(const actor::actor_down& m);
  void on(const actor::peer_state& m);
  void on(const actor::undeliverable& m);

 private:
  /// One answer of a request: a choice, and the session that writes it.
  struct answer_state {
    session_id session;
    actor::actor_ref<actors::session> where;
    std::string text;
    std::vector<api::token_report> tokens;
    finish_reason finish = finish_reason::stop;
    session_stats stats;
    copy_report copied;
    bool begun = false;  // its first event was sent
    bool over = false;
  };
  /// One request in work.
  struct request_state {
    api::generation_request wish;
    api::response_head head;
    std::unique_ptr<api::event_writer> events;
    std::vector<answer_state> answers;
    std::string request_id;
    instant began;
    std::optional<session_id> live;  // whose sequence is borrowed
    bool streaming_begun = false;
    bool first_text_seen = false;
  };
  /// Who asked, and where the answer goes.
  struct caller {
    std::uint64_t exchange = 0;
    std::string request_id;
    tenant_id tenant;
  };
  /// What a route needs of the request around it.
  struct visit {
    const http_arrived& m;
    std::string path;  // without /v1
    std::string request_id;
    tenant_id tenant;
    [[nodiscard]] caller who() const { return {m.exchange, request_id, tenant}; }
  };
  struct live_state {
    actor::actor_ref<edit_session> where;
    tenant_id tenant;
  };
  /// A call that an edit session has not answered yet.
  struct live_wait {
    caller who;
    session_id session;
    std::optional<api::generation_request> wish;  // complete and edit
    instant began;
  };

  void route(const visit& v);
  void serve_generation(const visit& v, api::endpoint from);
  void serve_models(const visit& v);
  void serve_tokenize(const visit& v);
  void serve_detokenize(const visit& v);
  void serve_template(const visit& v);
  void serve_health(const visit& v);
  void serve_metrics(const visit& v);
  /// Live sessions, in gateway_live.cpp. False for a path that is none of theirs.
  bool route_live(const visit& v);
  void open_live(const visit& v);
  void call_live(const visit& v, session_id session, edit_verb verb, std::string path = {});
  void refuse_waits_on(session_id session);
  [[nodiscard]] std::optional<api::api_error> room_for_live(tenant_id tenant) const;

  [[nodiscard]] std::optional<api::api_error> readiness() const;
  [[nodiscard]] bool knows_model(const std::string& name) const;
  [[nodiscard]] result<std::string> render(const api::json& messages, bool add_generation_prompt) const;
  [[nodiscard]] std::vector<token_range> turns_of(const api::json& messages, std::span<const token> prompt) const;
  api::answer<std::vector<std::vector<token>>> prompts_of(const api::generation_request& wish) const;
  api::answer<std::shared_ptr<const guide_rules>> rules_of(const api::generation_request& wish) const;
  api::answer<std::vector<token>> prediction_of(const api::generation_request& wish) const;
  /// Opens the sessions that answer `r`, or says why not.
  std::optional<api::api_error> begin_request(const caller& who, request_state r,
                                              const std::vector<std::vector<token>>& prompts,
                                              const std::vector<token>& prediction,
                                              const std::optional<borrowed_sequence>& borrowed = {});
  std::optional<api::api_error> open_sessions(const caller& who, request_state& r,
                                              const std::vector<std::vector<token>>& prompts,
                                              const std::vector<token>& prediction,
                                              const std::shared_ptr<const guide_rules>& rules,
                                              const std::optional<borrowed_sequence>& borrowed);

  void respond(std::uint64_t exchange, unsigned status, std::string body, const std::string& request_id,
               header_list more = {}, std::string content_type = "application/json");
  void respond_error(std::uint64_t exchange, const api::api_error& why, const std::string& request_id);
  void stream(std::uint64_t exchange, std::string data, bool end = false);
  void begin_stream(std::uint64_t exchange, request_state& r);
  void complete_if_over(std::uint64_t exchange);
  void fail_request(std::uint64_t exchange, const failure& why, std::uint32_t retry_after_ms);
  void drop_request(std::uint64_t exchange, bool cancel_sessions);
  void count_drafts(const session_stats& s);
  void note_finished(const request_state& r, std::string_view reason);
  std::pair<std::uint64_t, std::size_t> whose(session_id session) const;

  std::shared_ptr<const gateway_services> services_;
  std::uint64_t arrived_to_ = 0;                               // the latest exchange that was read
  std::set<std::uint64_t> left_early_;                         // later ones whose clients have left already
  std::unordered_map<std::uint64_t, request_state> requests_;  // by exchange
  std::unordered_map<session_id, std::pair<std::uint64_t, std::size_t>> answers_of_sessions_;  // exchange, answer
  std::unordered_map<session_id, live_state> live_;
  std::unordered_map<std::uint64_t, live_wait> live_waits_;  // by exchange
  std::optional<scheduler_report> scheduler_;
  std::unordered_map<actor::address, draft_report> drafters_;
  instant scheduler_heard_;
  bool draining_ = false;
  bool drained_ = false;
  std::int64_t created_seconds_ = 0;
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::gateway>;
