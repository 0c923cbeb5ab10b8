#include "actors/http/read_request.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "actors/http/http_replies.hpp"
#include "actors/http/resumption.hpp"
#include "actors/http/routing/api_keys.hpp"
#include "actors/http/shapes/openai/edit_response.hpp"
#include "actors/http/tool_answers.hpp"
#include "actors/prompts/fill_prompt.hpp"

namespace redline::actors {

bool repeats_prompt_ids(const api::generation_request& asked) {
  return asked.return_token_ids && asked.from != api::endpoint::native;
}

api::request_limits limits_for(const gateway_services& services) {
  return {.sampling_of = [&services](const std::string& name) {
    const auto model = services.find_model(name);
    return model ? (*model)->sampling_of(name) : sampling::sampling_defaults{};
  }};
}

namespace {

// Limit of prompt ids that the first events of a stream's choices repeat. They are written on the gateway's thread.
constexpr std::uint64_t streamed_ids_max = 1 << 17;
// Limit of prompt tokens that one handler copies into the logs of their answers: 16 MiB, a few milliseconds.
constexpr std::uint64_t copied_tokens_max = 1 << 22;

/// The prompt's tokens, before any log-probability is known.
api::prompt_report report_prompt(const served_model& model, std::span<const token> tokens, std::string_view echo) {
  api::prompt_report out;
  for (const token t : tokens) {
    out.tokens.push_back({.chosen = {std::string(model.answers->tokenizer()->piece(t, true)), 0, t},
                          .top = {},
                          .id = t,
                          .has_logprob = false});
  }
  out.characters = utf8::count_code_points(echo);
  return out;
}

std::optional<api::api_error> check_scores(const api::generation_request& asked, std::size_t prompt_tokens,
                                           const api::request_limits& limits) {
  const auto top = asked.scores_prompt();
  const std::uint64_t count = std::uint64_t{prompt_tokens} * (1 + top.value_or(0));
  if (!top || count <= limits.prompt_logprobs_max) return std::nullopt;
  const char* const field = asked.prompt_logprobs ? "prompt_logprobs" : "logprobs";
  return api::bad_field(field, "'" + std::string(field) + "' asks for " + std::to_string(count) +
                                   " log-probabilities of prompts, at most " +
                                   std::to_string(limits.prompt_logprobs_max) +
                                   " are allowed in a request: send fewer or shorter prompts, or ask for fewer "
                                   "alternatives.");
}

/// The splitter in the state where an answer to this prompt begins.
tools::reasoning_splitter split_after(const api::generation_request& asked, const prompt_builder& builder,
                                      std::string_view rendered) {
  using enum tools::reasoning_splitter::beginning;
  // An answer that follows a grammar cannot contain reasoning.
  if (!asked.splits_reasoning || asked.format || asked.copy) return {};
  const tools::call_format* const format = builder.tools().format();
  if (format != nullptr && format->has_channels) {
    // The reader of tool calls also reads their channels.
    return asked.calls_tools() ? tools::reasoning_splitter() : tools::reasoning_splitter::of_channels(rendered);
  }
  const auto tags = tools::reasoning_splitter::tags_of(builder.template_source());
  if (tags.open.empty()) return {};
  const auto end = rendered.find_last_not_of(" \t\r\n");
  if (end != std::string_view::npos && rendered.substr(0, end + 1).ends_with(tags.open)) return {tags, in_thought};
  if (!asked.continues_last) return {tags, either};
  // The text that the client began may have an open think tag, or may already be the answer.
  const auto& begun = asked.messages.back()["content"].get_ref<const std::string&>();
  const auto open = begun.rfind(tags.open);
  if (open == std::string::npos) return {tags, begun.empty() ? either : answer};
  return {tags, begun.find(tags.close, open) == std::string::npos ? in_thought : answer};
}

/// The token sequences that must not occur: the word at the beginning of a line, and after a space.
std::vector<std::vector<token>> spell_bad_words(const text::tokenizer& tokenizer,
                                                const std::vector<std::string>& words) {
  std::vector<std::vector<token>> out;
  for (const auto& word : words) {
    for (const auto& spelling : {word, " " + word}) {
      auto tokens = tokenizer.encode(spelling, {.continues = true});
      if (!tokens.empty() && std::find(out.begin(), out.end(), tokens) == out.end()) out.push_back(std::move(tokens));
    }
  }
  return out;
}

/// Adds the same bias for each token of a text.
void add_text_bias(const text::tokenizer& tokenizer, const std::vector<std::pair<std::string, float>>& texts,
                   sampling::sampling_params& out) {
  for (const auto& [text, bias] : texts) {
    for (const token t : tokenizer.encode(text, {.continues = true})) out.logit_bias.emplace_back(t, bias);
  }
  std::ranges::sort(out.logit_bias);
}

/// Checks the size of what each choice repeats of its prompt.
std::optional<api::api_error> check_repeated(const gateway_services& services, const api::generation_request& asked,
                                             const std::vector<prompt_to_answer>& prompts) {
  std::uint64_t ids = 0;
  std::uint64_t bytes = 0;
  std::uint64_t copied = 0;
  for (const auto& p : prompts) {
    if (repeats_prompt_ids(asked)) ids += p.tokens.size() * asked.n;
    bytes += (p.echo.size() + (p.text ? p.text->size() : 0)) * asked.n;
    copied += p.tokens.size() * asked.answers_per_prompt();
  }
  if (copied > copied_tokens_max) {
    return api::bad_field("n", "The number of prompt tokens times the answers per prompt is " + std::to_string(copied) +
                                   "; expected at most " + std::to_string(copied_tokens_max) +
                                   ": ask for fewer answers in one request.");
  }
  if (asked.stream && ids > streamed_ids_max) {
    return api::bad_field("return_token_ids", "'return_token_ids' would repeat " + std::to_string(ids) +
                                                  " tokens of prompts in a stream; expected at most " +
                                                  std::to_string(streamed_ids_max) + ".");
  }
  bytes += 2 * ids;
  if (asked.stream || bytes <= services.answer_bytes_max) return std::nullopt;
  return answer_too_large(bytes, services.answer_bytes_max);
}

/// Drops what is not read any more, and counts what the request keeps from here on.
std::uint64_t drop_what_was_read(parsed_request& ready, std::size_t body_bytes) {
  auto& asked = ready.what.asked;
  asked.messages = api::json::array();
  for (auto& p : asked.prompts) p = std::string();  // the number of prompts decides that of the choices
  asked.template_variables = api::json::object();
  asked.prediction.reset();
  asked.fill.reset();
  if (asked.tools) asked.tools->all = {};
  if (asked.copy) asked.copy->files = {};
  if (ready.what.spec.copy) ready.what.spec.copy->files = {};  // the rules own them
  // Each answer has a log here, at the scheduler and at the drafter, guesses of its text, and an actor.
  constexpr std::uint64_t copies = 3, actor_bytes = 32U << 10;
  const std::uint64_t answers = asked.answers_per_prompt();
  std::uint64_t guesses = ready.what.spec.prediction.size() * sizeof(token);
  for (const auto& text : asked.resume_texts) guesses += text.size();
  std::uint64_t bytes = guesses;
  for (const auto& p : ready.prompts) {
    const std::uint64_t tokens = p.tokens.size() * sizeof(token);
    bytes += (repeats_prompt_ids(asked) ? tokens : 0) + (p.text ? p.text->size() : 0) +
             answers * (copies * tokens + p.echo.size() + guesses + actor_bytes);
  }
  const std::uint64_t alternatives = asked.scores_prompt().value_or(0);
  for (const auto& p : ready.prompts) {
    bytes += p.report.tokens.size() * (sizeof(api::token_report) + alternatives * sizeof(api::token_probability));
  }
  if (ready.rules) bytes += copies * body_bytes;  // files with their tokens, or texts that calls may copy
  return bytes;
}

/// Prompts for fill-in-the-middle requests. A text longer than the context is cut around the gap.
api::checked<std::vector<prompt_to_answer>> fill_prompts(const served_model& model,
                                                         const api::generation_request& request) {
  const auto& tokenizer = *model.answers->tokenizer();
  if (!can_fill(tokenizer.vocab())) {
    return api::bad_field(
        request.from == api::endpoint::native ? "input_suffix" : "suffix",
        "The model '" + model.name +
            "' has no tokens for filling in the middle: serve one that has them, such as "
            "Qwen2.5-Coder, StarCoder2, CodeLlama or DeepSeek-Coder, or send the text before the cursor "
            "as the 'prompt' of /v1/completions.",
        "unsupported_parameter");
  }
  fill_task task{.before = {}, .after = request.fill->suffix, .path = request.fill->path, .context = {}};
  for (const auto& file : request.fill->context) task.context.push_back({file.path, file.text});
  gap_filler filler(tokenizer, task, model.answers->context_max(), model.answers->longest_piece_bytes());
  std::vector<prompt_to_answer> out;
  for (const auto& p : request.prompts) out.push_back({filler.prompt(std::get<std::string>(p)), std::nullopt});
  return out;
}

/// What the prompt's format lets expect as its answer, if the method of the request or the server reads that.
std::optional<formats::expectation> expect_from(const served_model& model, const api::generation_request& request,
                                                std::string_view prompt) {
  const bool is_read =
      request.speculation.recognise && draft::reads_prediction(request.drafting(model.draft_defaults).how);
  if (!is_read || request.prediction || request.prompts.size() > 1 || request.echo) return std::nullopt;
  return formats::recognise(prompt);
}

/// Makes what a prompt lets expect the answer's prediction, unless it has no room in the context.
void predict_from_format(parsed_request& ready) {
  if (ready.prompts.size() != 1 || !ready.prompts.front().expected) return;
  const auto expected = *std::exchange(ready.prompts.front().expected, std::nullopt);
  const auto& answers = *ready.what.model->answers;
  if (answers.check_length(expected.text.size(), "prompt")) return;
  auto tokens = answers.tokenizer()->encode(expected.text);
  if (tokens.size() + ready.prompts.front().tokens.size() > answers.context_max()) return;
  ready.what.asked.edit_format = {expected.format, static_cast<std::uint32_t>(tokens.size())};
  ready.what.spec.prediction = std::move(tokens);
  ready.what.spec.is_from_format = true;
}

void settle_template(const served_model& model, api::generation_request& request) {
  if (request.from != api::endpoint::chat) return;
  const std::string& source = model.prompts->template_source();
  const auto knows = [&source](const std::string& name) { return source.find(name) != std::string::npos; };
  auto& variables = request.template_variables;
  if (!request.reasoning_effort.empty() && !variables.contains("reasoning_effort")) {
    if (knows("reasoning_effort")) {
      variables["reasoning_effort"] = request.reasoning_effort;
    } else if (request.reasoning_effort == "none" && knows("enable_thinking")) {
      if (!variables.contains("enable_thinking")) variables["enable_thinking"] = false;
    } else {
      request.ignored.emplace_back("reasoning_effort");
    }
  }
  for (const auto& [name, value] : variables.items()) {
    if (!knows(name)) request.ignored.push_back("chat_template_kwargs." + name);
  }
}

api::checked<std::vector<prompt_to_answer>> build_prompts(const gateway_services& services, const served_model& model,
                                                          const api::generation_request& request, std::int64_t now) {
  std::vector<prompt_to_answer> out;
  const auto& builder = *model.prompts;
  const auto policy = request.evicting(services.eviction_defaults).policy;
  const bool evicts = policy != kv::eviction_policy::off;
  if (model.keeps_states && evicts && policy != kv::eviction_policy::reevaluate) {
    return api::bad_field("redline.eviction.policy",
                          "Layers of this model keep a state that cannot lose tokens, so '" +
                              std::string(kv::name_of(policy)) + "' cannot be used: ask for 'reevaluate' or 'off'.",
                          "unsupported_parameter");
  }
  if (request.speculation.method == draft::method::mtp && !model.has_mtp) {
    return api::bad_field(
        "redline.speculation.method",
        "This model has no MTP layer, so 'mtp' cannot be used: ask for 'auto', which takes what there "
        "is, or serve a file that has the layer.",
        "unsupported_parameter");
  }
  // Refuses a text that is too long before tokenizing it. An evicting conversation may leave out older turns.
  const auto check = [&](std::size_t bytes, const std::string& field) {
    const auto why = evicts ? std::nullopt : model.answers->check_length(bytes, field);
    return why ? std::optional(api::error_of(*why, {})) : std::nullopt;
  };
  if (request.from == api::endpoint::chat) {
    if (const auto why = check_tools(model, request.tools)) return *why;
    std::size_t bytes = 0;
    for (const auto& m : request.messages) {
      if (m["content"].is_string()) bytes += m["content"].get_ref<const std::string&>().size();
    }
    if (const auto why = check(bytes, "messages")) return *why;
    const auto* tools = request.tools ? &*request.tools : nullptr;
    const auto* format = builder.tools().format();
    if (request.continues_last && request.calls_tools() && format != nullptr && format->has_channels) {
      return api::bad_field("continue_final_message",
                            "This model cannot continue the last message with tools, because it begins a channel with "
                            "each message: leave 'tools' out, or end the conversation with a user message.",
                            "unsupported_parameter");
    }
    const auto rendered = request.continues_last
                              ? builder.render_to_continue(request.messages, now, tools, request.template_variables)
                              : builder.render(request.messages, true, now, tools, request.template_variables);
    if (!rendered) {
      if (rendered.error().code == errc::invalid_argument) return api::bad_field("messages", rendered.error().context);
      return api::error_of(rendered.error());
    }
    if (const auto why = check(rendered->text.size(), "messages")) return *why;
    out.push_back({builder.tokens(*rendered), std::nullopt, split_after(request, builder, rendered->text)});
    out.back().expected = expect_from(model, request, rendered->text);
    if (evicts) out.back().turns = builder.turns(*rendered, out.back().tokens, now);
    return out;
  }
  if (request.fill) return fill_prompts(model, request);
  for (const auto& p : request.prompts) {
    if (const auto* tokens = std::get_if<std::vector<token>>(&p)) {
      out.push_back({*tokens, std::nullopt});
      if (!request.echo) continue;
      if (auto text = model.answers->tokenizer()->decode(*tokens, {.render_special = true}))
        out.back().echo = std::move(*text);
      continue;
    }
    const auto& text = std::get<std::string>(p);
    if (const auto why = check(text.size(), "prompt")) return *why;
    out.push_back({builder.text(text), std::nullopt});
    out.back().expected = expect_from(model, request, text);
    if (request.echo) out.back().echo = text;
  }
  return out;
}

}  // namespace

api::checked<asked_prompts> read_prompts(const gateway_services& services, api::generation_request request,
                                         std::int64_t now) {
  auto model = services.find_model(request.model);
  if (!model) return model.error();
  settle_template(**model, request);
  request.speculation.recognise = false;
  auto prompts = build_prompts(services, **model, request, now);
  if (!prompts) return prompts.error();
  return asked_prompts{std::move(*model), std::move(*prompts), std::move(request.cache_salt)};
}

api::checked<expected_answer> read_expected(const gateway_services& services, std::shared_ptr<const served_model> model,
                                            api::generation_request asked, const request_circumstances& when) {
  if (!when.session_key.empty()) asked.session_key = when.session_key;
  add_text_bias(*model->answers->tokenizer(), asked.text_bias, asked.sampling);
  auto had = read_resumption(*model, asked, services.eviction_defaults, when.last_event_id);
  if (!had) return had.error();
  answer_terms spec{.tenant = when.tenant,
                    .tokens_max = asked.tokens_max,
                    .tokens_min = asked.tokens_min,
                    .stops = asked.stop,
                    .stop_tokens = asked.stop_tokens,
                    .ignore_end = asked.ignore_eos,
                    .sampling = asked.sampling,
                    .draft = asked.drafting(model->draft_defaults),
                    .eviction = asked.evicting(services.eviction_defaults),
                    .format = asked.format,
                    .created_seconds = *had ? (*had)->created_seconds : when.unix_seconds};
  spec.indent_min = asked.indent_min;
  spec.predict_us_max = std::uint64_t{asked.predict_ms_max} * 1000;
  if (!asked.cache_salt.empty()) spec.prefix_scope = to_prefix_scope(when.tenant, asked.cache_salt);
  spec.trace = asked.trace && asked.stream;
  if (asked.resume_texts.size() == 1) spec.known_text = asked.resume_texts.front();
  spec.sampling.banned_sequences = spell_bad_words(*model->answers->tokenizer(), asked.bad_words);
  if (asked.logprobs || asked.best_of > asked.n) spec.logprobs = asked.top_logprobs;
  if (asked.copy) {
    const auto& c = *asked.copy;
    spec.copy = copy_spec{{.trust = *parse_copy_trust(c.trust),
                           .line_spans = c.line_spans,
                           .token_spans = c.token_spans,
                           .anchors = c.anchors},
                          c.files};
    if (c.confidence_min) spec.copy->options.confidence_min = *c.confidence_min;
    if (c.probability_min) spec.copy->options.probability_min = *c.probability_min;
  }
  if (asked.prediction) {
    const std::string field = "prediction.content";
    if (const auto why = model->answers->check_length(asked.prediction->size(), field)) {
      return api::error_of(*why, {});
    }
    spec.prediction = model->answers->tokenizer()->encode(*asked.prediction);
    const auto most = model->answers->context_max();
    if (spec.prediction.size() > most) {
      return api::bad_field(field,
                            context_sentence(most) + " However, '" + field + "' has " +
                                std::to_string(spec.prediction.size()) + " tokens: send less.",
                            "context_length_exceeded");
    }
  }
  return expected_answer{std::move(asked), std::move(model), std::move(spec), std::move(*had)};
}

api::checked<parsed_request> read_request(const gateway_services& services, const std::string& body,
                                          api::request_parser parse, request_circumstances when) {
  auto parsed = parse(body, limits_for(services));
  if (!parsed) return parsed.error();
  if (parsed->shape) when.last_event_id.clear();  // the events of other APIs have no ids
  const auto model = services.find_model(parsed->model);
  if (!model) return model.error();
  settle_template(**model, *parsed);
  auto what = read_expected(services, *model, std::move(*parsed), when);
  if (!what) return what.error();
  auto prompts = build_prompts(services, **model, what->asked, what->spec.created_seconds);
  if (!prompts) return prompts.error();
  std::size_t prompt_tokens = 0;
  for (const auto& one : *prompts) prompt_tokens += one.tokens.size();
  if (const auto why = check_scores(what->asked, prompt_tokens, limits_for(services))) return *why;
  for (auto& one : *prompts) {
    if (what->asked.scores_prompt()) one.report = report_prompt(**model, one.tokens, one.echo);
    if (what->asked.from != api::endpoint::native || !what->asked.shows_field("prompt")) continue;
    if (auto text = (*model)->answers->tokenizer()->decode(one.tokens, {.render_special = true}))
      one.text = std::make_shared<const std::string>(std::move(*text));
  }
  what->spec.shows_control =
      std::any_of(prompts->begin(), prompts->end(), [](const auto& one) { return one.thoughts.needs_control(); });
  auto held_to = hold_to_tools(**model, what->asked);
  if (!held_to) return held_to.error();
  what->spec.tools = std::move(*held_to);
  auto rules = (*model)->answers->rules_for(what->spec);
  if (!rules) return api::error_of(rules.error(), {});
  *rules = with_known_texts(std::move(*rules), what->asked.messages);
  if (const auto why = check_repeated(services, what->asked, *prompts)) return *why;
  parsed_request ready{std::move(*what), std::move(*prompts), std::move(*rules)};
  predict_from_format(ready);
  ready.bytes = drop_what_was_read(ready, body.size());
  return ready;
}

}  // namespace redline::actors
