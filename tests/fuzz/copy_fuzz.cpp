// Any bytes are refused or parse to a program that prints as the same bytes, with one file or several; the result has
// the total size of its parts.
#include <cstdlib>

#include "runtime/copy/program.hpp"
#include "tests/fuzz/driver.hpp"

using namespace redline;

std::vector<std::string> fuzz::seeds() {
  return {"<copy lines=\"1-2\" first=\"a\" last=\"b\"/><gen>x</gen></program>",
          "<copy lines=\"1-3\"/><gen>x\n</gen></program>", "<gen><\\/gen><\\\\/gen></ge</gen></program>",
          "<copy file=\"2\" lines=\"1-12\"/><copy file=\"1\" tokens=\"2-3\"/></program>", "</program>"};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<copy::document> one = {copy::document("a\nb\r\n\nlast", {1, 2, 5, 6, 10})};
  static const std::vector<copy::document> two = {one[0], copy::document(std::string(30, '\n'))};
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const auto* files : {&one, &two}) {
    const auto p = copy::parse_program(bytes, copy::shape_of(*files, true));
    if (!p) continue;
    if (copy::print_program(*p, files->size() > 1) != bytes) std::abort();
    std::size_t wanted = 0;
    for (const auto& op : *p) {
      if (const auto* gen = std::get_if<copy::gen_op>(&op))
        wanted += gen->text.size();
      else if (const auto& c = std::get<copy::copy_op>(op); true)
        wanted += (*files)[c.file - 1].slice(c.of, c.first, c.last).size();
    }
    const auto out = copy::resolve(*p, *files);
    if (!out || out->size() != wanted) std::abort();
  }
  auto shape = copy::shape_of(one);
  shape.anchors = true;
  std::vector<copy::anchor_pair> anchors;
  if (const auto p = copy::parse_program(bytes, shape, &anchors)) {
    std::size_t copies = 0;
    for (const auto& op : *p) copies += std::holds_alternative<copy::copy_op>(op) ? 1 : 0;
    if (anchors.size() != copies) std::abort();
  }
  return 0;
}
