// The flags of every study are in one translation unit, because every unit that builds CLI11 commands compiles CLI11.

#include "bench/studies/commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "actors/cli/flags/generation_flags.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "bench/studies/cache/bench_evict.hpp"
#include "bench/studies/cache/bench_pie.hpp"
#include "bench/studies/cache/bench_prefix.hpp"
#include "bench/studies/cache/pie_cases.hpp"
#include "bench/studies/common/edit_corpus.hpp"
#include "bench/studies/edits/bench_copy.hpp"
#include "bench/studies/edits/bench_drafts.hpp"
#include "bench/studies/edits/bench_edit.hpp"
#include "bench/studies/edits/bench_formats.hpp"
#include "bench/studies/fleet/bench_simulate.hpp"
#include "bench/studies/fleet/fleet_placer.hpp"
#include "bench/studies/load/bench_broker.hpp"
#include "bench/studies/load/bench_load.hpp"
#include "bench/studies/passes/bench_accuracy.hpp"
#include "bench/studies/passes/bench_forward.hpp"

namespace redline::studies {
namespace {

void add_kv_flag(CLI::App& c, std::string& kv, const char* help = "Element type of keys and values") {
  c.add_option("--kv", kv, help)->check(CLI::IsMember({"f32", "f16", "bf16", "q8_0", "i16"}))->capture_default_str();
}
void add_numerics_flag(CLI::App& c, std::string& numerics) {
  c.add_option("--numerics", numerics, "How products are computed")
      ->check(CLI::IsMember({"auto", "float", "bf16", "int8"}))
      ->capture_default_str();
}
CLI::Option* add_json_flag(CLI::App& c, std::string& path, const std::string& what) {
  return c.add_option("--json", path, "Write " + what + " to this file as JSON")->type_name("FILE");
}
void add_edits_flag(CLI::App& c, std::string& path) {
  c.add_option("--edits", path,
               "JSONL with instruction, before, after and optionally id and path; default: "
               "../shared/data/edits/blazedit_like.jsonl if it is there, else bench/edits.jsonl")
      ->check(CLI::ExistingFile);
}

void add_fleet_flags(CLI::App& c, fleet_options& f) {
  c.add_option("--minutes", f.minutes, "Virtual time; the first quarter warms up and is not measured")
      ->check(CLI::Range(0.1, 1440.0))
      ->capture_default_str();
  c.add_option("--think-seconds", f.think_seconds, "Mean time between an answer and its user's next question")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  c.add_option("--gateways", f.gateways, "Gateways, each with a placer of its own")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  c.add_option("--tenants", f.tenants,
               "Tenants: editors, chats and agents in turn; the n-th has 1/n of the first's users")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  c.add_option("--diurnal", f.diurnal, "How much the load swings around its mean; one day is --minutes")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  c.add_option("--context", f.limits.tokens_max, "Most tokens of a conversation")
      ->check(CLI::Range(512, 1 << 20))
      ->capture_default_str();
  c.add_option("--kv-pages", f.limits.pages_count, "Pages of 32 tokens that a worker's KV pool has")
      ->check(CLI::Range(64, 1 << 24))
      ->capture_default_str();
  c.add_option("--running-max", f.limits.running_max, "Most answers that a worker computes at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  c.add_option("--waiting-max", f.limits.waiting_max, "Most answers that wait for that at a worker")
      ->check(CLI::Range(0, 1 << 16))
      ->capture_default_str();
  c.add_option("--seed", f.seed, "The same seed gives the same figures")->capture_default_str();
}
CLI::Option* add_curve_flag(CLI::App& c, std::string& path) {
  return c
      .add_option("--model-curve", path,
                  "What passes take: a server's pass-costs-*.json in ~/.cache/redline, or the JSON of 'redline bench "
                  "forward'")
      ->required()
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
}
std::vector<std::string> known_placers() { return {std::begin(placer_names), std::end(placer_names)}; }

}  // namespace

void add_bench_broker(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<broker_study_options>();
  auto* c = bench.add_subcommand("broker", "Messages a second through a broker, and what each costs it");
  c->add_option("--gateways", f->gateways, "Processes that ask")->check(CLI::Range(1, 64))->capture_default_str();
  c->add_option("--workers", f->workers, "Processes that answer")->check(CLI::Range(1, 64))->capture_default_str();
  c->add_option("--bytes", f->bytes, "Bytes of a message")->check(CLI::Range(0, 1 << 20))->capture_default_str();
  c->add_option("--in-flight", f->in_flight, "Questions of each gateway on their way")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  c->add_option("--seconds", f->seconds, "How long each part takes")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  add_json_flag(*c, f->json, "the figures");
  c->callback([f, &exit_code] { exit_code = run_broker_study(*f); });
}

void add_bench_drafts(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<draft_study_options>();
  auto* c = bench.add_subcommand("drafts", "What the rule that chooses drafts gives at fixed prices, over known edits");
  c->add_option("--model", f->model, "A GGUF file; its tokenizer is all that is needed")
      ->required()
      ->check(CLI::ExistingFile);
  add_edits_flag(*c, f->edits);
  c->add_option("--count", f->count, "Edits, at even distances of the edit ratio")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  c->add_option("--tokens-max", f->tokens_max, "Leaves out edits whose prompt and answer have more")
      ->check(CLI::Range(16, 1 << 20))
      ->capture_default_str();
  c->add_option("--model-right", f->model_right, "Share of the draft model's own tokens that are right")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  c->add_flag("--constants", f->constants, "Also each constant of the rule at half and at double of its value");
  add_json_flag(*c, f->json, "the figures");
  c->callback([f, &exit_code] { exit_code = run_drafts(*f); });
}

void add_bench_formats(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<format_study_options>();
  auto* c = bench.add_subcommand("formats", "What the recognition of prompt formats gives, over recorded answers");
  c->add_option("--model", f->model, "A GGUF file; its tokenizer is all that is needed")
      ->required()
      ->check(CLI::ExistingFile);
  c->add_option("--bodies", f->bodies, "A JSONL file: each line has a rendered 'prompt' and its 'answer'")
      ->required()
      ->check(CLI::ExistingFile);
  add_json_flag(*c, f->json, "the figures");
  c->callback([f, &exit_code] { exit_code = run_formats(*f); });
}

void add_bench_forward(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<forward_options>();
  auto* c = bench.add_subcommand("forward", "Time of one forward pass by rows and context, with the machine's bounds");
  c->add_option("--model", f->model, "A GGUF file")->required()->check(CLI::ExistingFile);
  c->add_option("--rows", f->rows, "Rows of a pass")->delimiter(',')->check(CLI::Range(1, 4096))->capture_default_str();
  c->add_option("--context", f->contexts, "Tokens in the KV cache before them")
      ->delimiter(',')
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  add_threads_flag(*c, f->threads);
  add_numerics_flag(*c, f->numerics);
  add_kv_flag(*c, f->kv);
  c->add_option("--samples", f->samples, "Least number of passes per cell")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  c->add_option("--seconds", f->seconds, "Least time per cell")->check(CLI::Range(0.0, 600.0))->capture_default_str();
  c->add_flag("--last-only", f->last_only,
              "Logits of the last row only (default: also of every row, as verification may need)");
  c->add_option("--distinct-tokens", f->distinct_tokens,
                "So many tokens that repeat, as text that is copied does; experts of a mixture are then touched again "
                "(0: no token comes twice, as long as there are others)")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  c->add_flag("--profile", f->profile, "Time of each part of a pass");
  add_json_flag(*c, f->json, "the figures ('-': print them instead of the table)");
  c->callback([f, &exit_code] { exit_code = run_forward(*f); });
}

void add_bench_accuracy(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<accuracy_options>();
  auto* c =
      bench.add_subcommand("accuracy", "How far the logits of models are from those of the file they were made of");
  c->add_option("--reference", f->reference, "The GGUF file to compare with")->required()->check(CLI::ExistingFile);
  c->add_option("--model", f->models, "GGUF files")->required()->check(CLI::ExistingFile);
  c->add_option("--prompts", f->prompts, "JSON with cases[].text, such as bench/demo_models/vectors.json")
      ->required()
      ->check(CLI::ExistingFile);
  c->add_option("--numerics", f->numerics, "How products are computed; several: each model with each")
      ->check(CLI::IsMember({"auto", "float", "bf16", "int8"}))
      ->delimiter(',')
      ->capture_default_str();
  add_kv_flag(*c, f->kv, "Element type of the models' keys and values; the reference has f32");
  add_threads_flag(*c, f->threads);
  add_json_flag(*c, f->json, "the figures ('-': print them instead of the table)");
  c->callback([f, &exit_code] { exit_code = run_accuracy(*f); });
}

void add_bench_copy(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<copy_study_options>();
  auto* c = bench.add_subcommand("copy", "Edit programs: time of copied runs, what edits can copy, programs executed");
  add_model_flags(*c, f->models);
  add_chat_template_flag(*c, f->models.chat_template);
  c->add_option("--edits", f->edits, "JSONL files of edits (default: bench/edits.jsonl)")
      ->delimiter(',')
      ->check(CLI::ExistingFile);
  c->add_option("--context-tokens", f->context_tokens, "Tokens already in the KV cache")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  c->add_option("--runs", f->runs, "Lengths of copied runs, in tokens")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  c->add_option("--spans-min", f->spans_min, "Shortest spans that count as copied, in tokens")
      ->delimiter(',')
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  c->add_option("--users", f->users, "Programs executed at once")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  c->add_option("--execute", f->executed, "Number of edits whose programs are executed; 0: none")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  c->add_option("--answer-tokens-max", f->answer_tokens_max,
                "Execute only edits whose new file has at most these tokens")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  c->add_option("--repeat", f->repeats, "Executions of each program; the fastest counts")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  c->add_option("--perturb", f->perturbed, "Number of edits whose spans get wrong ends at random; 0: none")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  c->add_option("--trials", f->trials, "Random ends tried for each of them")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  c->add_option("--self-written", f->self_written,
                "Number of edits for which the model writes its own program; 0: none")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  c->add_option("--seconds", f->seconds, "Least time per measured run")
      ->check(CLI::Range(0.0, 60.0))
      ->capture_default_str();
  c->add_flag_callback(
      "--processor-time", [f] { f->clock = clock_kind::processor; },
      "Measure processor time instead of wall time; for machines with other load, with --threads 1");
  add_json_flag(*c, f->json, "everything");
  c->footer(
      "bound: 1 / ((1 - f) + f / s) over the spans, s the measured speed-up of a span's length; with program: every "
      "token\n"
      "that the model has to choose counts, not only the text. For several users a decoded token costs its share of a\n"
      "common step. Speed-ups do not include the prompts, which are timed separately.");
  c->callback([f, &exit_code] { exit_code = run_copy(*f); });
}

void add_bench_edit(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<edit_options>();
  auto* c =
      bench.add_subcommand("edit", "Characters per second of every drafting method over edits with known results");
  add_model_flags(*c, f->models, false);
  add_chat_template_flag(*c, f->models.chat_template);
  add_drafting_flags(*c, f->drafting);
  add_edits_flag(*c, f->edits);
  c->add_option("--methods", f->methods, "Methods to compare; default: all that these models can run")
      ->delimiter(',')
      ->check(CLI::IsMember(method_names()));
  c->add_option("--limit", f->limit, "Take at most this many edits, evenly spaced by edit ratio; 0: all")
      ->capture_default_str();
  c->add_option("--repeat", f->repeats, "Runs of each edit by each method; the fastest counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  c->add_option("--max-tokens", f->tokens_max, "Tokens of an answer; 0: a quarter more than the known result has")
      ->capture_default_str();
  c->add_flag(
      "--replay", f->replay,
      "Commit the known result's tokens instead of the model's choices, and compute every pass: real times of a "
      "model of any size, such as 'redline synth --tokenizer DRAFT' makes. Drafts stay real");
  c->add_option("--replay-draft-accuracy", f->replay_draft_accuracy,
                "With --replay, replay the draft model's choices too, and compute its passes: it accepts every correct "
                "token of a lookup draft, and this share of its own tokens is correct")
      ->check(CLI::Range(0.0, 1.0));
  c->add_option("--replay-mtp-accuracy", f->replay_mtp_accuracy,
                "With --replay, the same for the model's MTP layer: this share of its tokens is correct")
      ->check(CLI::Range(0.0, 1.0));
  c->add_option("--prediction-right", f->prediction_right,
                "Methods prediction and auto: predict the known result with this share of its lines intact; of the "
                "others half are missing and half have a word changed. Default: the old file is the prediction")
      ->check(CLI::Range(0.0, 1.0));
  c->add_option("--grid-runs", f->grid_runs, "blazedit: try each of these --max-num-run")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  c->add_option("--grid-micro", f->grid_micro, "blazedit: with each of these --micro-draft-tokens")
      ->delimiter(',')
      ->check(CLI::Range(1, 512));
  c->add_option("--grid-ngram", f->grid_ngram, "blazedit: with each of these --max-matching-ngram-size")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  c->add_flag(
      "--timeline", f->timeline,
      "Also tell where the time of decoding goes, and what passes of each width give; --json has every pass and "
      "handler");
  add_json_flag(*c, f->json, "every run and the summary, after each edit,");
  c->add_option("--merge", f->merge, "Run nothing; combine files that several processes wrote with --json")
      ->check(CLI::ExistingFile);
  c->footer(
      "Edits run one at a time, through the actors and threads of this process; methods take turns on each edit, after "
      "a\n"
      "warm-up. chars/s: characters of the answer by the whole time, prompt included. worst decile: the 10th "
      "percentile\n"
      "over the edits. speed-up: that mean or decile divided by the one of the method regular. edit ratio: characters "
      "in\n"
      "removed or added lines as a share of those of both files. identical: every answer had the tokens and bytes of "
      "the\n"
      "first method's; the exit code is 1 if not.");
  c->callback([f, &exit_code] { exit_code = run_edit(*f); });
}

void add_bench_evict(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<evict_options>();
  auto* c = bench.add_subcommand("evict", "Answers longer than the window: time per token, drift of keys, quality");
  add_model_flags(*c, f->models);
  c->add_option("--window", f->window, "Tokens of the window")->check(CLI::Range(64, 1 << 20))->capture_default_str();
  c->add_option("--n-keep", f->n_keep, "First tokens of the window, which are never evicted")->capture_default_str();
  c->add_option("--n-discard", f->n_discard, "Tokens evicted at a time; half of the window is always tried as well")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  c->add_option("--tokens", f->tokens, "Tokens timed after the window is full")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  c->add_option("--reevaluations-max", f->reevaluations_max, "Most windows recomputed in one timed answer")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  c->add_option("--text", f->text, "Text whose perplexity is measured; default: the old files of the edits")
      ->check(CLI::ExistingFile);
  c->add_option("--text-tokens", f->text_tokens, "Tokens read of it; 0: none")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  add_json_flag(*c, f->json, "the figures");
  c->callback([f, &exit_code] { exit_code = run_evict(*f); });
}

void add_bench_load_agent(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<load_agent_options>();
  auto* c = bench.add_subcommand("load-agent", "Send requests as a 'load --agents' elsewhere says");
  c->add_option("--join", f->join, "Its --agents-listen endpoint")->required();
  c->add_flag("--insecure-plaintext", f->insecure_plaintext, "Allow tcp, which is not encrypted here");
  c->callback([f, &exit_code] { exit_code = run_load_agent(*f); });
}

void add_bench_load(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<load_options>();
  auto* c = bench.add_subcommand("load", "What many users of a server get, by their number and by method");
  auto* server = c->add_option("--server", f->server, "http://HOST:PORT of a running server")->group("Server");
  c->add_option("--api-key", f->api_key, "Key for --server")->group("Server");
  auto* model = c->add_option("-m,--model", f->model, "Start a server with this target model instead")
                    ->check(CLI::ExistingFile)
                    ->excludes(server)
                    ->group("Server");
  c->add_option("-d,--draft", f->draft, "Its draft model")->check(CLI::ExistingFile)->needs(model)->group("Server");
  add_chat_template_flag(*c, f->chat_template);
  c->add_option("--merge", f->merge, "Send nothing; combine files that several processes wrote with --json")
      ->check(CLI::ExistingFile)
      ->excludes(server)
      ->excludes(model)
      ->group("Server");

  c->add_option("--concurrency", f->clients,
                "Levels, closed loop: clients that wait for each answer before the next request; default 1,4,16,32,64")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->group("Load");
  c->add_option("--rate", f->rates, "Levels, open loop: requests per second, Poisson arrivals")
      ->delimiter(',')
      ->check(CLI::Range(0.001, 10000.0))
      ->group("Load");
  c->add_option("--requests", f->requests, "Requests per level; 0: four per client and at least 16, or 64 with --rate")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str()
      ->group("Load");
  c->add_option("--methods", f->methods,
                "Run each level with each of these; those that the server refuses are left out")
      ->delimiter(',')
      ->capture_default_str()
      ->group("Load");
  c->add_option("--repeat", f->repeats, "Runs of each level by each method")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->group("Load");
  add_edits_flag(*c, f->edits);
  c->get_option("--edits")->group("Load");
  c->add_option("--edit-bytes-max", f->edit_bytes_max, "Leave out edits of larger files; 0: keep all")
      ->capture_default_str()
      ->group("Load");
  c->add_option("--mix", f->mix.completions, "Share of short completions (32 tokens) among the edits")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group("Load");
  c->add_option("--max-tokens", f->mix.tokens_max, "Tokens of an edit's answer")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->group("Load");
  c->add_flag("--predict", f->mix.predict, "Send the old file as the request's prediction, as editors do")
      ->group("Load");
  c->add_flag("--replay", f->replay,
              "With --model: the server answers each edit's known result, and computes every pass; so models that are "
              "not trained have the load of ones that are")
      ->needs("--model")
      ->group("Load");
  c->add_option("--turns", f->mix.turns,
                "Questions of a conversation, each with those before it and their answers; --rate is of conversations")
      ->check(CLI::Range(1, 64))
      ->excludes("--replay")
      ->capture_default_str()
      ->group("Load");
  c->add_option("--think-seconds", f->mix.think_seconds, "Mean time between an answer and the conversation's next")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str()
      ->group("Load");
  c->add_option("--tenant-keys", f->tenant_keys,
                "File with lines TENANT:KEY: conversations are of these tenants by turns, who are reported apart")
      ->check(CLI::ExistingFile)
      ->group("Load");
  auto* trace = c->add_option("--trace", f->trace,
                              "Instead of levels: requests of a JSONL file, when they are due; see bench/README.md")
                    ->check(CLI::ExistingFile)
                    ->excludes("--concurrency")
                    ->excludes("--rate")
                    ->excludes("--replay")
                    ->group("Load");
  c->add_option("--trace-speed", f->trace_speed, "How many times as fast")
      ->check(CLI::Range(0.001, 1000.0))
      ->needs(trace)
      ->capture_default_str()
      ->group("Load");
  c->add_option("--seed", f->seed, "The same seed gives the same requests at the same times")
      ->capture_default_str()
      ->group("Load");

  c->add_option("--agents", f->agents,
                "Processes elsewhere ('redline bench load-agent') that send the requests together")
      ->check(CLI::Range(1, 4096))
      ->group("Agents");
  c->add_option("--agents-listen", f->agents_listen, "Endpoint where they dial in: tcp://HOST:PORT or ipc://PATH")
      ->group("Agents");
  c->add_flag("--insecure-plaintext", f->insecure_plaintext, "Allow tcp, which is not encrypted here")->group("Agents");
  c->add_option("--warm-up", f->warm_up, "Seconds at the beginning of each level that do not count")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str()
      ->group("Load");
  c->add_option("--find-knee", f->knee_share,
                "Instead of levels: the highest rate of which this share of answers is within the SLO, from --rate on")
      ->check(CLI::Range(0.01, 1.0))
      ->excludes("--trace")
      ->group("Load");

  c->add_option("--slo-ttft-ms", f->target.first_ms, "Goodput: most milliseconds to the first text")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str()
      ->group("Report");
  c->add_option("--slo-tpot-ms", f->target.per_token_ms, "Goodput: most milliseconds per further token")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str()
      ->group("Report");
  add_json_flag(*c, f->json, "every request and the summary")->group("Report");
  c->footer(
      "TTFT: time to the first text. TPOT: time after it divided by the tokens after it; a chunk carries several "
      "tokens,\n"
      "so the time between chunks says nothing. With --rate, times count from when a request was due. chars/s and "
      "tokens/s:\n"
      "of all clients together. rows a pass, busy: of the server's target models, where /metrics tells. goodput: "
      "answers per second within both --slo limits; share: of all requests, errors\n"
      "included. Compare methods within a level: they take turns on the same requests. The exit code is 1 if equal\n"
      "requests got different answers.");
  c->callback([f, &exit_code] { exit_code = run_load(*f); });
}

void add_bench_pie(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<pie_options>();
  f->cases = default_pie_path();
  auto* c = bench.add_subcommand("pie",
                                 "What an edit in the middle of a cached text costs, and what each cache policy loses");
  c->add_option("--model", f->model, "A GGUF file")->required()->check(CLI::ExistingFile);
  c->add_option("--cases", f->cases, "Edits in the format of pie_contexts.jsonl; '': none")->capture_default_str();
  c->add_option("--tasks", f->tasks, "Tasks of the cases")->delimiter(',')->capture_default_str();
  c->add_option("--language", f->language, "Take only contexts of this language; '': all")->capture_default_str();
  c->add_option("--limit", f->limit, "Most edits per task; 0: all that fit")->capture_default_str();
  c->add_option("--window", f->window, "Take the last lines of a context that fit into this many tokens")
      ->check(CLI::Range(64, 1 << 20))
      ->capture_default_str();
  c->add_option("--lengths", f->lengths, "Also measure times at these context lengths, in tokens")
      ->delimiter(',')
      ->check(CLI::Range(64, 1 << 20));
  c->add_option("--inserted", f->inserted, "Tokens inserted there")->check(CLI::Range(1, 1024))->capture_default_str();
  c->add_option("--exact-max", f->exact_max, "Measure policy exact only where it recomputes at most this many tokens")
      ->capture_default_str();
  c->add_option("--samples", f->samples, "Samples of each time")->check(CLI::Range(1, 1000))->capture_default_str();
  add_threads_flag(*c, f->threads);
  add_numerics_flag(*c, f->numerics);
  add_kv_flag(*c, f->kv);
  add_json_flag(*c, f->json, "everything");
  c->callback([f, &exit_code] { exit_code = run_pie(*f); });
}

void add_bench_prefix(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<prefix_options>();
  auto* c = bench.add_subcommand("prefix", "Time to the first token with and without a cached prompt prefix");
  add_model_flags(*c, f->models);
  c->add_option("--prefix-tokens", f->prefix_tokens, "Tokens that all prompts begin with")
      ->check(CLI::Range(32, 1 << 20))
      ->capture_default_str();
  c->add_option("--own-tokens", f->own_tokens, "Tokens after them that differ from prompt to prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  c->add_option("--tokens", f->answer_tokens, "Tokens of each answer; answers are compared")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  c->add_option("--repeat", f->repeat, "Prompts of each kind")->check(CLI::Range(1, 1000))->capture_default_str();
  add_json_flag(*c, f->json, "the figures");
  c->callback([f, &exit_code] { exit_code = run_prefix(*f); });
}

void add_bench_simulate(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<simulate_options>();
  auto* c = bench.add_subcommand("simulate", "A pool of many workers in virtual time: times, losses, broker, fairness");
  add_curve_flag(*c, f->curve);
  c->add_option("--workers", f->fleet.workers, "Workers, each of which takes for its passes what the curve says")
      ->check(CLI::Range(1, 60'000))
      ->capture_default_str();
  c->add_option("--sessions", f->fleet.sessions, "Users, each with a conversation")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  c->add_option("--loss-per-minute", f->fleet.loss_per_minute, "Share of the workers that are killed each minute")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  c->add_option("--restart-seconds", f->fleet.restart_seconds, "Until a killed worker is back, with empty caches")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  c->add_option("--detect-ms", f->fleet.detect_ms, "Until a broker notices; 3000 where a host falls silent")
      ->check(CLI::Range(0, 600'000))
      ->capture_default_str();
  c->add_option("--hop-us", f->fleet.hop_us, "Of a message between a process and the broker")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  c->add_option("--draft-us", f->fleet.draft_us, "To make a draft")
      ->check(CLI::Range(0, 10'000'000))
      ->capture_default_str();
  c->add_option("--placement", f->fleet.placement, "Who chooses the worker of an answer")
      ->check(CLI::IsMember(known_placers()))
      ->capture_default_str();
  add_fleet_flags(*c, f->fleet);
  add_json_flag(*c, f->json, "the figures ('-': print them instead of the table)");
  c->callback([f, &exit_code] { exit_code = run_simulate(*f); });
}

void add_bench_plan(CLI::App& bench, int& exit_code) {
  auto f = std::make_shared<plan_options>();
  auto* c = bench.add_subcommand("plan", "How many machines so many users need, by simulation");
  add_curve_flag(*c, f->curve);
  c->add_option("--users", f->fleet.sessions, "Users, each with a conversation")
      ->required()
      ->check(CLI::Range(1, 10'000'000));
  c->add_option("--slo-ttft-ms", f->level.first_token_ms, "Answers begin within this time")
      ->check(CLI::Range(0.01, 1e7))
      ->capture_default_str();
  c->add_option("--slo-tpot-ms", f->level.time_per_token_ms, "And take at most this time per further token")
      ->check(CLI::Range(0.001, 1e7))
      ->capture_default_str();
  c->add_option("--percentile", f->level.percentile, "Of 100 answers so many have to")
      ->check(CLI::IsMember({50, 95, 99}))
      ->capture_default_str();
  add_fleet_flags(*c, f->fleet);
  add_json_flag(*c, f->json, "every trial ('-': print them instead of the table)");
  c->callback([f, &exit_code] { exit_code = run_plan(*f); });
}

}  // namespace redline::studies
