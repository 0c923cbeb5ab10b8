#include "actors/serving/shared_grammars.hpp"

#include <functional>
#include <string_view>
#include <utility>

namespace redline::actors {

std::shared_ptr<shared_grammar> shared_grammars::share(const grammar::constraint& text) {
  if (text.kind == grammar::grammar_kind::none) return nullptr;
  const std::size_t digest = std::hash<std::string_view>()(text.text);
  std::erase_if(all_, [](const auto& each) { return each.expired(); });
  for (const auto& each : all_) {
    auto known = each.lock();
    if (known->digest == digest && known->text.same_grammar(text)) return known;
  }
  auto fresh = std::make_shared<shared_grammar>(shared_grammar{.text = text, .digest = digest, .name = ++last_name_});
  fresh->text.state.clear();
  fresh->automaton = automata_->find(text);
  all_.push_back(fresh);
  return fresh;
}

void shared_grammars::put(batch_run& run, shared_grammar& g, const std::vector<std::uint32_t>& state,
                          std::uint64_t batch, std::uint64_t target_start_id) {
  const bool has_it = (target_start_id != 0 && g.told_start_id == target_start_id) || g.told_batch == batch;
  if (has_it && !spells_all_) {
    run.grammar = grammar::without_text({});
  } else {
    run.grammar = g.text;
    g.told_batch = batch;
  }
  run.grammar.state = state;
  run.grammar_name = g.name;
}

bool shared_grammars::spell_all() {
  if (!std::exchange(spells_all_, true)) return true;
  spells_all_ = false;
  return false;
}

}  // namespace redline::actors
