#include "runtime/copy/program.hpp"

namespace redline::copy {
namespace {

std::string describe(const copy_op& op) {
  return (op.of == unit::lines ? "lines " : "tokens ") + std::to_string(op.first) + "-" + std::to_string(op.last) +
         " of file " + std::to_string(op.file);
}

}  // namespace

program_shape shape_of(std::span<const document> files, bool token_spans) {
  program_shape shape{.files = {}, .token_spans = token_spans};
  for (const auto& f : files) shape.files.push_back({f.count(unit::lines), f.count(unit::tokens)});
  return shape;
}

namespace {

std::string print(const program& p, bool names_files, std::span<const document> anchored) {
  std::string out;
  for (const auto& op : p) {
    if (const auto* gen = std::get_if<gen_op>(&op)) {
      out += "<gen>" + escape_text(gen->text) + "</gen>";
      continue;
    }
    const auto& copy = std::get<copy_op>(op);
    out += "<copy ";
    if (names_files) out += "file=\"" + std::to_string(copy.file) + "\" ";
    out += copy.of == unit::lines ? "lines=\"" : "tokens=\"";
    out += std::to_string(copy.first) + "-" + std::to_string(copy.last) + "\"";
    if (!anchored.empty() && copy.of == unit::lines) {
      const auto anchors = anchors_of(copy, anchored);
      out += " first=\"" + anchors.first + "\" last=\"" + anchors.last + "\"";
    }
    out += "/>";
  }
  return out + "</program>";
}

}  // namespace

std::string print_program(const program& p, bool names_files) { return print(p, names_files, {}); }
std::string print_anchored(const program& p, std::span<const document> files) {
  return print(p, files.size() > 1, files);
}

anchor_pair anchors_of(const copy_op& op, std::span<const document> files) {
  if (op.of != unit::lines) return {};
  const auto line = [&](std::uint32_t i) { return std::string(anchor_of(files[op.file - 1].slice(op.of, i, i))); };
  return {line(op.first), line(op.last)};
}

result<program> parse_program(std::string_view bytes, const program_shape& shape, std::vector<anchor_pair>* anchors) {
  program_reader reader(shape);
  program p;
  std::string text;
  anchor_pair written;
  const auto where = [](std::size_t i) { return "program, byte " + std::to_string(i) + ": expected "; };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto before = reader.state();
    const auto event = reader.feed(bytes[i], text);
    if (!event) {
      return failure{errc::invalid_argument,
                     where(i) + reader.machine().wanted(before) + ", found '" + std::string(bytes.substr(i, 16)) + "'"};
    }
    if (reader.state().at == program_state::step::first_anchor && before.at == reader.state().at)
      written.first += bytes[i];
    if (reader.state().at == program_state::step::last_anchor && before.at == reader.state().at)
      written.last += bytes[i];
    // A text op, even an empty one, is complete after its end tag.
    if (before.at == program_state::step::gen_body && reader.state().at == program_state::step::await_op) {
      p.emplace_back(gen_op{std::move(text)});
      text.clear();
    }
    if (*event == program_reader::event::copy) {
      p.emplace_back(reader.state().op);
      if (anchors != nullptr) anchors->push_back(std::move(written));
      written = {};
      reader.resume();
    }
  }
  if (reader.state().at != program_state::step::done) {
    return failure{errc::invalid_argument,
                   where(bytes.size()) + reader.machine().wanted(reader.state()) + ", found the end"};
  }
  return p;
}

result<std::string> resolve(const program& p, std::span<const document> files, std::size_t bytes_max) {
  std::string out;
  for (const auto& op : p) {
    std::string_view part;
    if (const auto* gen = std::get_if<gen_op>(&op)) {
      part = gen->text;
    } else {
      const auto& copy = std::get<copy_op>(op);
      if (copy.file < 1 || copy.file > files.size() || copy.first < 1 || copy.first > copy.last ||
          copy.last > files[copy.file - 1].count(copy.of)) {
        return failure{errc::invalid_argument,
                       "expected " + describe(copy) + ", found " +
                           (copy.file < 1 || copy.file > files.size()
                                ? std::to_string(files.size()) + " files"
                                : std::to_string(files[copy.file - 1].count(copy.of)) + " in that file")};
      }
      part = files[copy.file - 1].slice(copy.of, copy.first, copy.last);
    }
    if (part.size() > bytes_max - out.size()) {
      return failure{errc::invalid_argument,
                     "the program resolves to more than " + std::to_string(bytes_max) + " bytes"};
    }
    out += part;
  }
  return out;
}

}  // namespace redline::copy
