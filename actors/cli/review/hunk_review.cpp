#include "actors/cli/review/hunk_review.hpp"

#include "runtime/base/terminal_text.hpp"

namespace redline::actors::cli {
namespace {

constexpr const char* letters =
    "y - take this hunk\n"
    "n - do not take this hunk\n"
    "a - take this hunk and all later ones of this file\n"
    "d - do not take this hunk or any later one of this file\n"
    "e - edit this hunk\n"
    "q - quit: do not take this hunk or any later one; files that were written stay written\n"
    "? - show this help\n";

constexpr const char* about_editing =
    "# To drop a removal, replace '-' with ' '. To drop an addition, delete the line with '+'.\n"
    "# Lines that begin with '#' are ignored. If no lines are left, the hunk stays as it was.\n";

}  // namespace

std::vector<hunk> hunk_review::choose(const std::string& path, const std::vector<hunk>& hunks) {
  std::vector<hunk> taken;
  if (over_) return taken;
  for (std::size_t i = 0; i < hunks.size(); ++i) {
    const std::string place = "(" + std::to_string(i + 1) + "/" + std::to_string(hunks.size()) + ") ";
    desk_.show((i == 0 ? "--- " + shown_on_terminal(path) + "\n" : "") + heading_of(hunks[i]) + "\n" +
               body_of(hunks[i], desk_.colour));
    for (bool answered = false; !answered;) {
      answered = true;
      desk_.show(place + "Take this hunk [y,n,a,d,e,q,?]? ");
      const auto said = desk_.read_line();
      const char letter = !said ? 'q' : said->size() == 1 ? said->front() : '?';
      if (letter == 'q') over_ = true;
      if (letter == 'q' || letter == 'd') return taken;
      if (letter == 'a') {
        taken.insert(taken.end(), hunks.begin() + static_cast<std::ptrdiff_t>(i), hunks.end());
        return taken;
      }
      if (letter == 'y') {
        taken.push_back(hunks[i]);
      } else if (letter == 'e') {
        auto changed = edited(hunks[i]);
        answered = changed.has_value();
        if (changed) taken.push_back(std::move(*changed));
      } else if (letter != 'n') {
        desk_.show(letters);
        answered = false;
      }
    }
  }
  return taken;
}

std::optional<hunk> hunk_review::edited(const hunk& h) const {
  const auto text = desk_.edit("# " + heading_of(h) + "\n" + about_editing + body_of(h));
  auto changed = text ? read_body(h, *text) : result<hunk>(text.error());
  if (changed) return std::move(*changed);
  desk_.show(changed.error().context + "\n");
  return std::nullopt;
}

}  // namespace redline::actors::cli
