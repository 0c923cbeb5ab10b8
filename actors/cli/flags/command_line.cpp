#include "actors/cli/flags/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "runtime/huggingface/hub_cache.hpp"

namespace redline::actors::cli {
namespace {

template<class T>
option add_to(CLI::App& app, const std::string& names, T& into, const std::string& help) {
  CLI::Option* added = app.add_option(names, into, help);
  if constexpr (std::is_arithmetic_v<T>) {
    added->capture_default_str();
  } else if constexpr (!std::is_same_v<T, std::optional<std::uint32_t>>) {
    if (!into.empty()) added->capture_default_str();
  }
  return option(*added, app);
}

}  // namespace

option& option::require(bool required) {
  option_->required(required);
  return *this;
}
option& option::group(const char* heading) {
  option_->group(heading);
  return *this;
}
option& option::describe(const std::string& help) {
  option_->description(help);
  return *this;
}
option& option::hide_default() {
  option_->default_str("");
  return *this;
}
option& option::real_range(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
option& option::integer_range(std::int64_t least, std::int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
option& option::one_of(std::vector<std::string> names) {
  option_->check(CLI::IsMember(std::move(names)));
  return *this;
}
option& option::existing_file() {
  option_->check(CLI::ExistingFile);
  return *this;
}
option& option::model_file() {
  const auto place = [](std::string& name) {
    std::error_code ignored;
    if (std::filesystem::exists(name, ignored) || !huggingface::looks_like_hub_name(name)) {
      return CLI::ExistingFile(name);
    }
    const auto found = huggingface::find_in_hub_cache(huggingface::hub_cache_folder(), name);
    if (!found) return found.error().context;
    name = *found;
    return std::string();
  };
  option_->transform(CLI::Validator(place, "FILE|ORG/NAME[:QUANT]"));
  return *this;
}
option& option::existing_folder() {
  option_->check(CLI::ExistingDirectory);
  return *this;
}
option& option::existing_path() {
  const auto exists = [](std::string& name) {
    std::error_code ignored;
    return std::filesystem::exists(name, ignored) ? std::string() : "File does not exist: " + name;
  };
  option_->check(CLI::Validator(exists, "FILE|FOLDER"));
  return *this;
}
option& option::any_file() {
  option_->type_name("FILE");
  return *this;
}
option& option::any_folder() {
  option_->type_name("DIR");
  return *this;
}
option& option::count(int least, int most) {
  option_->expected(least, most);
  return *this;
}
option& option::separator(char between) {
  option_->delimiter(between);
  return *this;
}
option& option::exclude(const option& other) {
  option_->excludes(other.option_);
  return *this;
}
bool option::given() const { return option_->count() > 0; }
bool option::given_as_flag() const {
  const auto& order = app_->parse_order();
  return std::find(order.begin(), order.end(), option_) != order.end();
}

command::command(const command& parent, const std::string& name, const std::string& help)
    : app_(parent.app_->add_subcommand(name, help)) {}
void command::require_command() const { app_->require_subcommand(1); }

option command::add(const std::string& names, std::string& into, const std::string& help) const {
  return add_to(*app_, names, into, help);
}
option command::add(const std::string& names, std::int32_t& into, const std::string& help) const {
  return add_to(*app_, names, into, help);
}
option command::add(const std::string& names, std::uint32_t& into, const std::string& help) const {
  return add_to(*app_, names, into, help);
}
option command::add(const std::string& names, std::int64_t& into, const std::string& help) const {
  return add_to(*app_, names, into, help);
}
option command::add(const std::string& names, std::uint64_t& into, const std::string& help) const {
  return add_to(*app_, names, into, help);
}
option command::add(const std::string& names, float& into, const std::string& help) const {
  return add_to(*app_, names, into, help);
}
option command::add(const std::string& names, double& into, const std::string& help) const {
  return add_to(*app_, names, into, help);
}
option command::add(const std::string& names, std::optional<std::uint32_t>& into, const std::string& help) const {
  return add_to(*app_, names, into, help);
}
option command::add(const std::string& names, std::vector<std::string>& into, const std::string& help) const {
  return add_to(*app_, names, into, help);
}
option command::add_flag(const std::string& names, bool& into, const std::string& help) const {
  return option(*app_->add_flag(names, into, help), *app_);
}

void command::on_run(int& exit_code, std::function<int()> run) const {
  app_->callback([&exit_code, run = std::move(run)] { exit_code = run(); });
}

}  // namespace redline::actors::cli
