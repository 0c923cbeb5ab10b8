#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/server_address.hpp"
#include "actors/cli/server_view.hpp"

namespace redline::actors::cli {
namespace {

struct top_flags {
  std::string server = "http://127.0.0.1:8080";
  std::string api_key;
  bool once = false;
};

/// The server sends two events per second in any state.
constexpr std::chrono::milliseconds silence_max{10'000};
constexpr std::size_t plain_width = 100;
constexpr std::uint32_t events_per_line = 2;  // if the output is not a terminal

/// An alternate screen with unbuffered keys. The terminal is restored at the end, also after a signal.
class full_screen {
 public:
  full_screen() {
    if (tcgetattr(STDIN_FILENO, &before_) == 0) {
      has_keys_ = true;
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      raw.c_cc[VMIN] = 0;
      raw.c_cc[VTIME] = 0;
      tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    write_all("\x1b[?1049h\x1b[?25l");
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, leave);
  }
  ~full_screen() { restore(); }
  full_screen(const full_screen&) = delete;
  full_screen& operator=(const full_screen&) = delete;

  void show(const std::vector<std::string>& lines) {
    std::string out = "\x1b[H";
    for (std::size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
    write_all(out + "\x1b[J");
  }
  /// The next pressed key; 0 if there is none.
  [[nodiscard]] char key() const {
    char c = 0;
    return has_keys_ && read(STDIN_FILENO, &c, 1) == 1 ? c : '\0';
  }
  /// Returns columns and rows.
  [[nodiscard]] static std::pair<std::size_t, std::size_t> size() {
    winsize w{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0 || w.ws_row == 0) return {80, 24};
    return {w.ws_col, w.ws_row};
  }

 private:
  static void write_all(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
      if (n <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  static void restore() {
    write_all("\x1b[?25h\x1b[?1049l");
    if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  static void leave(int signal) {
    restore();
    _exit(128 + signal);
  }
  static inline termios before_{};
  static inline bool has_keys_ = false;
};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The server's answer in place of a stream, as a failure.
failure refusal(const server_address& at, const transport::http_response& answer) {
  const std::string peer = at.url.host + ":" + std::to_string(at.url.port);
  switch (answer.status) {
    case 401:
      return {errc::unauthorized, peer + " requires an API key; pass one with --api-key"};
    case 404:
      return {errc::unreachable, peer + " has no /v1/redline/status: it is not a Redline server, or an older version"};
    default:
      return {errc::unreachable, peer + " answered with HTTP status " + std::to_string(answer.status) +
                                     "; expected 200 and a stream of events"};
  }
}

/// Follows the stream until the handler returns false, which is success, or until it breaks.
result<void> follow(const server_address& at, const std::function<bool(server_status&&)>& on_status) {
  auto url = at.url;
  url.target += "/v1/redline/status";
  bool is_left = false;
  std::optional<failure> problem;
  const auto answer = transport::http_get_stream(url, at.headers,
                                                 [&](const transport::sse_event& e) {
                                                   if (e.data == "[DONE]") return true;
                                                   auto status = server_status::parse(e.data);
                                                   if (!status) {
                                                     problem = status.error();
                                                     return false;
                                                   }
                                                   is_left = !on_status(std::move(*status));
                                                   return !is_left;
                                                 },
                                                 {.silence_timeout = silence_max});
  if (problem) return *problem;
  if (is_left) return {};
  if (!answer) return answer.error();
  if (answer->status != 200) return refusal(at, *answer);
  return failure{errc::unreachable, "the server ended the stream"};
}

result<void> show_once(const server_address& at) {
  server_view view;
  const auto done = follow(at, [&](server_status&& s) {
    view.take(std::move(s), now_seconds());
    return !view.has_rates();
  });
  if (!done) return done;
  for (const auto& line :
       view.lines(isatty(STDOUT_FILENO) != 0 ? full_screen::size().first : plain_width, 0, worker_order::name)) {
    std::cout << line << "\n";
  }
  return {};
}

/// For a log: prints one line per second until the server or the reader is gone.
result<void> show_lines(const server_address& at) {
  server_view view;
  std::uint32_t events = 0;
  return follow(at, [&](server_status&& s) {
    if (events++ % events_per_line != 0) return true;
    const bool is_first = !view.has_rates();
    view.take(std::move(s), now_seconds());
    if (!view.has_rates()) return true;
    if (is_first) std::cout << server_view::line_head << "\n";
    std::cout << view.line() << std::endl;
    return std::cout.good();
  });
}

/// Runs until the user leaves. The last view stays on the terminal.
result<void> show_live(const server_address& at, server_view& view, worker_order& order) {
  full_screen screen;
  bool is_paused = false;
  bool explains = false;
  bool was_there = false;
  std::string problem;
  const auto draw = [&] {
    const auto [width, height] = full_screen::size();
    const std::size_t most = height > 1 ? height - 1 : 1;
    auto lines = explains ? server_view::legend(width, most) : view.lines(width, most, order);
    std::string foot = !problem.empty() ? problem
                                        : "q quit  p " + std::string(is_paused ? "resume" : "pause") + "  s sort by " +
                                              std::string(name_of(order)) + "  ? " + (explains ? "back" : "legend");
    foot.resize(std::min(foot.size(), width));
    lines.push_back("\x1b[7m" + foot + "\x1b[0m");
    screen.show(lines);
  };
  /// False if the user wants to leave.
  const auto take_keys = [&] {
    for (char key = screen.key(); key != '\0'; key = screen.key()) {
      if (key == 'q') return false;
      if (key == '?') explains = !explains;
      if (key == 'p') is_paused = !is_paused;
      if (key == 's')
        order = static_cast<worker_order>((static_cast<int>(order) + 1) % static_cast<int>(worker_order::last_));
    }
    return true;
  };
  for (;;) {
    const auto done = follow(at, [&](server_status&& s) {
      was_there = true;
      problem.clear();
      if (!take_keys()) return false;
      if (!is_paused) view.take(std::move(s), now_seconds());
      draw();
      return true;
    });
    if (done || !was_there) return done;
    problem = done.error().context + "; trying again";
    draw();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    if (!take_keys()) return {};
  }
}

result<void> show_live(const server_address& at) {
  server_view view;
  auto order = worker_order::name;
  REDLINE_TRY(show_live(at, view, order));
  for (const auto& line : view.lines(full_screen::size().first, 0, order)) std::cout << line << "\n";
  return {};
}

}  // namespace

void add_top(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<top_flags>();
  const command c(app, "top", "Show the activity of a running server: users, tokens, drafts, pages and workers");
  c.add("--server", f->server, "The server: http://HOST:PORT or https://HOST");
  c.add("--api-key", f->api_key, "The server's API key");
  c.add_flag("--once", f->once, "Print the present state once and exit");
  c.on_run(exit_code, [f] {
    const auto at = server_address::parse(f->server, f->api_key);
    if (!at) return report(at.error());
    if (f->once) return report(show_once(*at));
    return report(isatty(STDOUT_FILENO) != 0 ? show_live(*at) : show_lines(*at));
  });
}

}  // namespace redline::actors::cli
