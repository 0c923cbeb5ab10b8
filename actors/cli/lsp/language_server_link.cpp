// The link to the server: its state, and the editor's messages while it cannot be used.
#include <algorithm>
#include <utility>

#include "actors/cli/lsp/language_server.hpp"

namespace redline::actors::cli::lsp {

std::string language_server::sentence(std::string text) { return text.ends_with('.') ? text : text + "."; }

void language_server::server_started() {
  if (link_ != link::starting) return;
  link_ = link::up;
  pump_all();
}

void language_server::server_ended() {
  if (link_ == link::failed) return;
  link_ = link::starting;
  retry_ = retry_min;
  complain(
      complaint::server, message_type::warning,
      "Redline's server has ended; a new one is starting. There are no completions until it has loaded its model.");
  for (auto& [uri, d] : documents_) {
    drop_session(d, false);
    drop_next_edit(d);
    answer_empty(d.waiting);
    end_edits_of(uri, which::waiting, {rpc_code::request_failed, why_not()});
  }
}

void language_server::server_failed(const std::string& why) {
  link_ = link::failed;
  why_down_ = why;
  complained_.erase(complaint::server);
  complain(complaint::server, message_type::error, "Redline's server did not start: " + why);
}

void language_server::note(const server_reply& reply) {
  using kind = server_reply::kind;
  switch (reply.what) {
    case kind::gone:
      return lose(reply.why, reply.retry_after, true);
    case kind::unauthorized:
    case kind::foreign:
      return lose(reply.why, retry_max, false);
    case kind::full:
      return complain(complaint::full, message_type::warning,
                      "Redline at " + how_.server + " is full: " + sentence(reply.why) +
                          " Completions continue when it has capacity.");
    case kind::done:
      return is_fine();
    default:
      return;
  }
}

void language_server::lose(const std::string& why, std::chrono::seconds least, bool probes) {
  if (link_ == link::starting || link_ == link::failed) return;
  // If several calls fail together, the first one decides.
  if (link_ == link::down && how_.now() < retry_at_) return;
  link_ = link::down;
  probes_ = probes;
  why_down_ = why;
  retry_at_ = how_.now() + std::max(retry_, least);
  retry_ = std::min(retry_ * 2, retry_max);
  complain(
      complaint::server, message_type::warning,
      "Redline at " + how_.server + ": " + sentence(why) + " There are no completions until it can be used again.");
  for (auto& [uri, d] : documents_) {
    drop_next_edit(d);
    answer_empty(d.waiting);
    end_edits_of(uri, which::waiting, {rpc_code::request_failed, why_not()});
  }
}

std::string language_server::why_not() const {
  if (link_ == link::starting) return "Redline's server is starting; try again when it has loaded its model";
  return "Redline at " + how_.server + " cannot be used now: " + why_down_;
}

void language_server::is_fine() {
  retry_ = retry_min;
  if (complained_.erase(complaint::server) > 0) {
    show(message_type::info, "Redline at " + how_.server + " can be used again.");
  }
}

void language_server::complain(complaint about, message_type type, const std::string& text) {
  if (complained_.insert(about).second) show(type, text);
}

void language_server::show(message_type type, const std::string& text) {
  send_(rpc_notification("window/showMessage", {{"type", static_cast<int>(type)}, {"message", text}}));
}

std::optional<language_server::instant> language_server::wakes_at() const {
  std::optional<instant> out;
  const auto at = [&](instant when) { out = out ? std::min(*out, when) : when; };
  if (link_ == link::down && !is_probing_) at(retry_at_);
  if (link_ != link::up) return out;
  for (const auto& [uri, d] : documents_) {
    if (d.next.due) at(*d.next.due);
    if (d.not_before != instant{} && d.session.empty() && d.sync == 0 && d.wants_session && !d.refused) {
      at(d.not_before);
    }
  }
  return out;
}

void language_server::wake() {
  const instant now = how_.now();
  if (over_ || shut_down_) return;
  if (link_ == link::down && !is_probing_ && now >= retry_at_) {
    if (probes_) {
      is_probing_ = true;
      start({.what = task::kind::probe}, probe_call{});
    } else {
      link_ = link::up;
      pump_all();
    }
  }
  if (link_ != link::up) return;
  for (auto& [uri, d] : documents_) {
    if (d.next.due && now >= *d.next.due) begin_next_edit(d);
    if (d.not_before == instant{} || now < d.not_before) continue;
    d.not_before = {};
    pump(d);
  }
}

}  // namespace redline::actors::cli::lsp
