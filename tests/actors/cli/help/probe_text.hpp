#pragma once

#include "actors/cli/help/command_text.hpp"

namespace redline::actors::cli {

/// A program with options and commands of every kind.
inline command_text probe_text() {
  const argument_text help{.flags = {"-h", "--help"}, .help = "Print this help message and exit", .group = "Options"};
  command_text program{.name = "probe", .help = "Probes what's there."};
  program.arguments = {help,
                       {.flags = {"--log-level"},
                        .kind = value_kind::choice,
                        .choices = {"debug", "info"},
                        .help = "debug or info",
                        .group = "Options",
                        .preset = "info",
                        .variable = "PROBE_LOG_LEVEL"}};
  command_text serve{.name = "serve", .help = "Serve [a model]: over HTTP"};
  serve.arguments = {help,
                     {.flags = {"-m", "--model"},
                      .kind = value_kind::file,
                      .help = "The model's file, .gguf; or a name",
                      .group = "Models",
                      .variable = "PROBE_MODEL",
                      .required = true},
                     {.flags = {"--kv"},
                      .kind = value_kind::choice,
                      .choices = {"f16", "f32", "bf16"},
                      .help = "Type of keys",
                      .group = "Models",
                      .preset = "f16"},
                     {.flags = {"--keys"}, .kind = value_kind::folder, .help = "A folder", .group = "Options"},
                     {.flags = {"--rows"}, .kind = value_kind::number, .help = "How \\many", .group = "Options"},
                     {.flags = {"--json"}, .help = "As JSON", .group = "Options"}};
  command_text session{.name = "session", .help = "Sessions"};
  session.arguments = {help};
  command_text made{.name = "new", .help = "Open one"};
  made.arguments = {
      help, {.place = "FILES", .kind = value_kind::file, .help = "Files", .group = "Positionals", .repeated = true}};
  session.commands = {made, {.name = "close", .help = "Close one", .arguments = {help}}};
  program.commands = {serve, session, {.name = "bench", .help = "Measure", .hands_over = true}};
  return program;
}

}  // namespace redline::actors::cli
