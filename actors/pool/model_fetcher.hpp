#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "actors/messages/pool_messages.hpp"
#include "actors/pool/model_shelf.hpp"
#include "runtime/actor/offload.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"

namespace redline::actors {

struct model_fetcher_options {
  std::shared_ptr<model_shelf> shelf;        // where models are put
  std::shared_ptr<actor::thread_pool> pool;  // builds tokenizers; if null, the fetcher's own thread does
  /// The partners of a session that answers for a model with this card.
  std::function<result<session_partners>(const process_card&, draft::method, actor::address client)> partners_for;
  draft::draft_options draft_defaults;  // for requests that name no method
};

/// Merges a worker's card into what all workers of a model report. The lowest name becomes the model's own and the
/// others aliases; the shortest context counts, so that each worker can go on with any answer. The order of the cards
/// does not matter. Returns false when nothing changed.
bool join_card(process_card& all, const process_card& one);

/// Learns models from workers: fetches a model's header from a worker's header server, part by part, and from another
/// worker when that fails; makes the model's tokenizer and templates from it on the thread pool; and puts the model on
/// the shelf. Whatever it knows can be requested again from those that sent it.
class model_fetcher final : public actor::actor_of<model_fetcher> {
 public:
  using accepts = actor::protocol<fetch_model, lose_model, model_standing, header_part, fetch_due, actor::job_done,
                                  actor::undeliverable>;

  model_fetcher(actor::actor_context& context, model_fetcher_options options);

  void on(const fetch_model& m);
  void on(const lose_model& m);
  void on(const model_standing& m) { options_.shelf->rank(m.model, m.has_workers, m.since); }
  void on(const header_part& m);
  void on(const fetch_due& m);
  void on(const actor::job_done& m) { work_.on(m); }
  void on(const actor::undeliverable& m);

 private:
  /// What a header says, ready for use.
  struct parsed_header {
    std::shared_ptr<const text::tokenizer> tokenizer;
    std::shared_ptr<const grammar::token_trie> token_trie;
    std::shared_ptr<const prompt_builder> prompts;
    std::vector<std::string> known_phrases;
    bool has_mtp = false;
    bool keeps_states = false;
  };
  enum class stage : std::uint8_t { waiting, asking, pausing, parsing, ready, unusable };
  struct header_state {
    stage now = stage::waiting;          // waiting: no source yet
    std::deque<actor::address> sources;  // the first is asked
    std::set<actor::address> refused;    // sources that are not asked again
    std::string bytes;                   // received from the first source
    std::uint64_t total = 0;
    bool is_repeated = false;   // the next part was asked for once without result
    std::uint64_t attempt = 0;  // the latest step; reminders and jobs of earlier ones are void
    parsed_header parsed;       // when ready
  };
  struct known_model {
    process_card card;
    std::set<std::string> kinds;  // the workers' numerics
    std::uint64_t revision = 0;   // changes with card and kinds
    bool is_shown = false;        // the shelf has the latest card and kinds
  };
  using headers = std::map<std::uint64_t, header_state>;
  using models = std::map<std::uint64_t, known_model>;

  void forget(models::iterator model);
  void lose_kind(models::value_type& m, const std::string& numerics);
  static result<parsed_header> parse(const std::string& bytes);
  void ask(headers::value_type& h);
  void pause(headers::value_type& h);
  static void leave_source(header_state& h);
  void refuse_source(headers::value_type& h, const std::string& why);
  void parse_later(headers::value_type& h);
  void make_models(std::uint64_t header);
  void make_model(models::value_type& m);
  void show(models::iterator m, std::shared_ptr<const served_model> made);

  model_fetcher_options options_;
  actor::offload work_;
  headers headers_;  // by digest
  models models_;    // by digest
  std::uint64_t next_attempt_ = 1;
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::model_fetcher>;
