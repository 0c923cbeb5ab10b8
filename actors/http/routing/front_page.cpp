#include "actors/http/routing/front_page.hpp"

namespace redline::actors {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

std::string front_page::html() const {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Redline</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
      "pre{background:#f4f4f4;color:#111;padding:1rem;overflow:auto}td{padding-right:1.5rem}</style></head><body>\n"
      "<h1>Redline</h1>\n<p>A server for code-edit models with an OpenAI-compatible interface. Version " +
      escaped(version) + ", " + escaped(state) + ".</p>\n";
  if (needs_key) {
    out += "<p>It requires an API key: <code>Authorization: Bearer KEY</code>.</p>\n";
  } else {
    out += "<table>\n";
    for (const auto& m : models) {
      out += "<tr><td>model <code>" + escaped(m.name) + "</code></td><td>context of " +
             std::to_string(m.context_tokens) + " tokens</td></tr>\n";
    }
    out += "</table>\n";
  }
  if (lacks_studio) {
    out +=
        "<p>This server was built without the studio, its web page for edits. To get it, install Node.js and npm, and "
        "build the server again.</p>\n";
  }
  out += "<p>Give clients the base URL <code>" + escaped(base_url) + "/v1</code>, or try it:</p>\n<pre>curl -s " +
         escaped(base_url) + "/v1/chat/completions -H 'Content-Type: application/json' " +
         (needs_key ? "-H 'Authorization: Bearer KEY' " : "") +
         "-d '{\n  \"messages\": [{\"role\": \"user\", \"content\": \"Write a line of Python.\"}], \"max_tokens\": "
         "40}'</pre>\n"
         "<h2>Paths</h2>\n<table>\n";
  for (const auto& p : paths) {
    out += "<tr><td>" + escaped(p.method) + "</td><td><code>" + escaped(p.pattern) + "</code></td></tr>\n";
  }
  return out + "</table>\n</body></html>\n";
}

}  // namespace redline::actors
