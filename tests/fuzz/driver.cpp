// Runs a fuzz target without libFuzzer: its seeds, then mutations, for REDLINE_FUZZ_SECONDS (default 1) or until there
// were REDLINE_FUZZ_COUNT. REDLINE_FUZZ_SEED (default 1) chooses which: the same seed gives the same every time. An
// abort or a sanitizer's report fails the test; the input is saved in fuzz_crash.bin.
#include "tests/fuzz/driver.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::string current;

void keep_input(int) {
  std::ofstream("fuzz_crash.bin", std::ios::binary) << current;
  std::fputs("the input is saved in fuzz_crash.bin\n", stderr);
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

class mutator {
 public:
  mutator(const std::vector<std::string>& pool, std::uint32_t seed) : pool_(pool), random_(seed) {}

  std::string next() {
    std::string s = pool_[below(pool_.size())];
    for (std::size_t i = 1 + below(4); i > 0; --i) change(s);
    return s;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  void change(std::string& s) {
    constexpr std::uint64_t boundaries[] = {0,      1,      0x7f,       0x80,       0xff,
                                            0x7fff, 0xffff, 0x7fffffff, 0xffffffff, ~std::uint64_t{0}};
    const std::size_t at = below(s.size() + 1);
    switch (below(7)) {
      case 0:  // another byte
        if (at < s.size()) s[at] = static_cast<char>(random_());
        break;
      case 1:  // another bit
        if (at < s.size()) s[at] = static_cast<char>(s[at] ^ 1 << below(8));
        break;
      case 2:  // a boundary value
        for (std::size_t i = 0, n = std::size_t{1} << below(4), v = below(std::size(boundaries));
             i < n && at + i < s.size(); ++i) {
          s[at + i] = static_cast<char>(boundaries[v] >> 8 * i);
        }
        break;
      case 3:  // less
        s.erase(at, below(16));
        break;
      case 4:  // more
        s.insert(at, below(8), static_cast<char>(random_()));
        break;
      case 5: {  // a piece of another seed
        const std::string& other = pool_[below(pool_.size())];
        const std::size_t from = below(other.size());
        s.insert(at, other.substr(from, below(32)));
        break;
      }
      default:  // the end is missing
        if (below(4) == 0) s.resize(at);
    }
  }

  const std::vector<std::string>& pool_;
  std::mt19937 random_;
};

void feed(std::string input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
}

}  // namespace

int main() {
  std::signal(SIGABRT, keep_input);
  const auto asked = [](const char* name, double otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atof(text) : otherwise;
  };
  const std::chrono::duration<double> limit(asked("REDLINE_FUZZ_SECONDS", 1.0));
  const auto most = static_cast<std::uint64_t>(asked("REDLINE_FUZZ_COUNT", 1e18));
  const auto seed = static_cast<std::uint32_t>(asked("REDLINE_FUZZ_SEED", 1));
  const auto begin = std::chrono::steady_clock::now();
  const auto pool = redline::fuzz::seeds();
  std::uint64_t count = 0;
  std::chrono::duration<double> took{0};
  feed({});
  for (const std::string& s : pool) feed(s);
  for (mutator m(pool, seed); count < most && took < limit; ++count) {
    feed(m.next());
    took = std::chrono::steady_clock::now() - begin;
  }
  std::printf("%llu mutations of %zu seeds, %.0f a second, seed %u\n", static_cast<unsigned long long>(count),
              pool.size(), static_cast<double>(count) / took.count(), seed);
}
