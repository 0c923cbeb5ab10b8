#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/editing/edit_session.hpp"
#include "actors/http/gateway_services.hpp"
#include "actors/http/http_replies.hpp"
#include "actors/http/read_request.hpp"
#include "actors/http/readiness.hpp"
#include "actors/http/request/answer_writer.hpp"
#include "actors/http/request/generation_request.hpp"
#include "actors/http/request_reader.hpp"
#include "actors/http/shapes/openai/native_shape.hpp"
#include "actors/serving/session.hpp"
#include "runtime/grammar/tool_reader.hpp"
#include "runtime/tools/reasoning_splitter.hpp"

namespace redline::actors {

/// Serves the requests that a model answers: opens a session for each answer and turns the sessions' reports into
/// OpenAI's responses. A part of the gateway. It keeps no state that a client could not request again.
class completions {
 public:
  completions(actor::actor_context& context, std::shared_ptr<const gateway_services> services, const readiness& ready,
              http_replies& replies, request_reader& reader);

  /// Answers the request that `parse` reads from the body.
  void serve(const route_context& r, api::request_parser parse);
  /// Answers with `body` of the number of tokens that the model would read.
  void count(const route_context& r, api::request_parser parse, std::string (*body)(std::size_t prompt_tokens));
  /// Answers with the tokens of the request's prompts and computes nothing.
  void render(const route_context& r, api::endpoint from);

  [[nodiscard]] request_circumstances look_at(const route_context& r) const;
  /// Registers a request whose answer an edit session will start, and returns the terms to send to that edit session.
  /// If the request cannot be accepted, refuses it and returns nothing.
  std::optional<answer_terms> expect(const caller& who, expected_answer request,
                                     actor::actor_ref<edit_session> starter);
  /// Fails an expected answer. Does nothing if the exchange is unknown.
  void refuse(std::uint64_t exchange, const refusal& why);
  /// Fails the expected answers that this edit session has not started.
  void starter_is_gone(actor::actor_ref<edit_session> starter, const api::api_error& why);

  void on(const answer_started& m);
  void on(const session_admitted& m);
  void on(const session_text& m);
  void on(const session_finished& m);
  void on(const http_flow& m);
  /// False if no request has this exchange.
  bool client_left(std::uint64_t exchange);
  /// Ends a request after a part of its answer failed to reach the HTTP server.
  void answer_lost(std::uint64_t exchange, const failure& why);
  /// False if no answer has this session.
  bool session_died(actor::address where);
  void fail_all(const failure& why, std::uint32_t retry_after_ms);

  [[nodiscard]] bool idle() const { return requests_.empty(); }
  [[nodiscard]] std::size_t answers_count() const { return answers_.size(); }
  /// The answers in progress; the tenant's own include their counts so far.
  [[nodiscard]] std::vector<api::slot_report> list_running(tenant_id tenant) const;

 private:
  /// One answer of a request: a choice and the session that writes it.
  struct choice_state {
    session_id session;
    actor::actor_ref<actors::session> where;  // null until an edit session has started it
    std::string text;
    std::string reasoning;
    tools::reasoning_splitter thoughts;
    std::optional<grammar::tool_reader> reader;  // if the answer may call tools
    std::vector<tools::tool_call> calls;         // without arguments if streamed
    std::vector<api::token_report> tokens;
    double logprobs_sum = 0;           // ranks the candidates for best_of
    std::size_t scored_count = 0;      // prompt tokens scored so far, including the first
    std::uint32_t tokens_count = 0;    // in the answer so far
    std::uint32_t thought_tokens = 0;  // the part of tokens_count that is reasoning
    finish_reason finish = finish_reason::stop;
    session_stats stats;
    copy_report copied;
    std::string stop_text;
    std::optional<instant> last_text;
    trace::open_span span;  // covers the answer
    bool admitted = false;  // the answer will be computed
    bool begun = false;     // its first event was sent
    bool over = false;
  };
  struct request_state {
    caller who;
    api::generation_request asked;
    std::shared_ptr<const served_model> model;
    api::response_head head;
    std::unique_ptr<api::answer_writer> writer;
    std::vector<choice_state> choices;
    actor::actor_ref<edit_session> starter;  // null if the answer has none
    bool stream_begun = false;
    std::optional<microseconds> first_text;                        // measured from the request's arrival
    std::vector<std::vector<token>> prompt_ids;                    // if requested
    std::vector<std::shared_ptr<const std::string>> prompt_texts;  // for llama.cpp's shape
    std::vector<api::prompt_report> reports;  // the prompts' tokens, if requested; scored step by step
    std::uint32_t prompt_tokens = 0;          // sum over all prompts
    std::uint32_t tokens_count = 0;           // sum over all answers so far
    std::uint64_t answer_bytes = 0;           // lower bound on the whole answer so far
    byte_budget::claim held;                  // part of the request budget; grows in steps
    std::uint64_t held_bytes = 0;             // bytes that `held` should cover so far
    instant progress_told;                    // when the HTTP server last heard of a whole answer's progress
    [[nodiscard]] bool is_over() const {
      return std::all_of(choices.begin(), choices.end(), [](const choice_state& c) { return c.over; });
    }
    /// True once no choice can be refused any more because of a full queue.
    [[nodiscard]] bool is_admitted() const {
      return std::all_of(choices.begin(), choices.end(), [](const choice_state& c) { return c.admitted || c.over; });
    }
  };
  using requests = std::unordered_map<std::uint64_t, request_state>;  // keyed by exchange

  static api::choice to_choice(request_state& r, std::uint32_t number);

  void begin(const caller& who, parsed_request request);
  /// Moves the request and its model out of `from`.
  [[nodiscard]] request_state make_state(const caller& who, expected_answer& from, byte_budget::claim held,
                                         std::size_t prompt_tokens = 0);
  [[nodiscard]] std::optional<api::api_error> room_for(std::size_t answers, tenant_id tenant) const;
  std::optional<api::api_error> open_sessions(request_state& r, parsed_request& from);
  /// A span for one answer; empty unless the request is traced.
  [[nodiscard]] trace::open_span begin_span(const request_state& r, const answer_terms& spec) const;
  static void end_span(choice_state& c, const session_stats& stats, std::string_view finish);
  /// The request, and the choice that this session writes.
  std::pair<requests::iterator, std::size_t> find(session_id session);

  void end_unknown();
  [[nodiscard]] std::optional<api::api_error> hold_more(request_state& r, const session_text& m) const;

  using parts = std::vector<grammar::answer_part>;
  static parts take_text(const request_state& r, choice_state& c, const session_text& m);
  static parts take_rest(choice_state& c);
  /// Adds the parts to the choice and returns their events if it is streamed. tokens: of these parts, may be null.
  static std::string tell(request_state& r, std::size_t index, const parts& told,
                          const std::vector<api::token_report>* tokens);
  static std::string begin_choice(request_state& r, std::uint32_t number);
  void hear_scores(requests::iterator at, std::size_t index, const session_text& m);
  void respond_whole(request_state& r, std::vector<api::choice> choices, const api::usage_report& usage,
                     std::vector<log_field> cost);
  static const api::prompt_report* report_of_prompt(const request_state& r, std::size_t prompt);
  static void note_numerics(request_state& r, std::size_t index, numerics_id numerics);
  bool stream(requests::iterator r, std::string events, bool end = false);
  void note_progress(request_state& r);
  void finish(requests::iterator r);
  void keep_best(request_state& r) const;
  [[nodiscard]] static api::finish_reason public_finish(const request_state& r, const choice_state& c);
  [[nodiscard]] api::usage_report sum_usage(const request_state& r) const;
  void fail(requests::iterator r, const api::api_error& why, std::string_view for_log);
  void drop(requests::iterator r);
  void note_end(const request_state& r, request_end how);

  actor::actor_context& context_;
  const std::shared_ptr<const gateway_services> services_;
  const readiness& ready_;
  http_replies& replies_;
  request_reader& reader_;
  requests requests_;
  std::unordered_map<session_id, std::pair<std::uint64_t, std::size_t>> answers_;  // exchange and choice
};

}  // namespace redline::actors
