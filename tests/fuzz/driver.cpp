// Runs a fuzz target without libFuzzer, which GCC does not have: its seeds, then mutations, for REDLINE_FUZZ_SECONDS
// (default 1) or up to REDLINE_FUZZ_COUNT. One REDLINE_FUZZ_SEED (default 1) always gives the same mutations. An abort
// or a sanitizer's report fails the test, and the input is saved in fuzz_crash.bin.
//
// If the code was compiled with -fsanitize-coverage=trace-pc (preset asan), an input that takes a new branch, or takes
// one a new order of magnitude of times, is mutated further and, for the next run, stored in REDLINE_FUZZ_CORPUS.
#include "tests/fuzz/driver.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t places_count = 1 << 16;
/// How often this input passed each place in the code; places are hashed. It is empty without trace-pc. It is a plain
/// array, because the operator of std::array is traced like any function, and the tracing would call itself.
std::uint8_t passed[places_count];

}  // namespace

extern "C" __attribute__((no_sanitize_coverage, no_sanitize("address", "undefined"))) void __sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  std::uint8_t& times = passed[(place ^ place >> 16) % places_count];
  if (times < 255) ++times;
}

namespace {

/// The places that any input has passed so far, and how often, by order of magnitude.
class coverage {
 public:
  /// Adds what was passed since the last call and returns whether some of it is new. With small inputs this is most of
  /// the cost of an execution, so unpassed places are skipped by words, and nothing here is instrumented.
  [[gnu::no_sanitize_coverage, gnu::no_sanitize("address", "undefined")]] bool grow() {
    bool grew = false;
    const std::uint8_t* const times = passed;
    std::uint8_t* const seen = seen_.data();
    for (std::size_t word = 0; word < places_count; word += 8) {
      std::uint64_t any = 0;
      __builtin_memcpy(&any, times + word, 8);
      if (any == 0) continue;
      for (std::size_t i = word; i < word + 8; ++i) {
        if (times[i] == 0) continue;
        const auto level = static_cast<std::uint8_t>(0x80 >> (__builtin_clz(times[i]) - 24));
        grew = grew || (seen[i] & level) == 0;
        count_ += seen[i] == 0 ? 1 : 0;
        seen[i] |= level;
      }
    }
    return grew;
  }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::array<std::uint8_t, places_count> seen_{};
  std::size_t count_ = 0;
};

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
      case 0:  // changes a byte
        if (at < s.size()) s[at] = static_cast<char>(random_());
        break;
      case 1:  // changes a bit
        if (at < s.size()) s[at] = static_cast<char>(s[at] ^ 1 << below(8));
        break;
      case 2:  // writes a boundary value
        for (std::size_t i = 0, n = std::size_t{1} << below(4), v = below(std::size(boundaries));
             i < n && at + i < s.size(); ++i) {
          s[at + i] = static_cast<char>(boundaries[v] >> 8 * i);
        }
        break;
      case 3:  // removes bytes
        s.erase(at, below(16));
        break;
      case 4:  // inserts bytes
        s.insert(at, below(8), static_cast<char>(random_()));
        break;
      case 5: {  // copies a piece of another seed
        const std::string& other = pool_[below(pool_.size())];
        const std::size_t from = below(other.size());
        s.insert(at, other.substr(from, below(32)));
        break;
      }
      default:  // cuts the end
        if (below(4) == 0) s.resize(at);
    }
  }

  const std::vector<std::string>& pool_;
  std::mt19937 random_;
};

void feed(std::string input) {
  current = std::move(input);
  std::memset(passed, 0, places_count);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
}

// Small inputs run faster and reveal more.
constexpr std::size_t kept_bytes_max = 4096;
constexpr std::size_t kept_count_max = 20'000;

void read_corpus(const std::filesystem::path& folder, std::vector<std::string>& to) {
  std::filesystem::create_directories(folder);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    to.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
}

/// Stores the input under a name that depends only on its bytes.
void keep_in(const std::filesystem::path& folder, const std::string& input) {
  char name[24];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(std::hash<std::string>()(input)));
  std::ofstream(folder / name, std::ios::binary) << input;
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
  auto pool = redline::fuzz::seeds();
  const std::size_t seeds = pool.size();
  const char* corpus = std::getenv("REDLINE_FUZZ_CORPUS");
  if (corpus != nullptr) read_corpus(corpus, pool);
  coverage covered;
  feed({});
  for (const std::string& s : pool) {
    feed(s);
    covered.grow();
  }
  const std::size_t known = pool.size();
  std::uint64_t count = 0;
  std::chrono::duration<double> took{0};
  for (mutator m(pool, seed); count < most && took < limit; ++count) {
    feed(m.next());
    if (covered.grow() && current.size() <= kept_bytes_max && pool.size() < kept_count_max) {
      if (corpus != nullptr) keep_in(corpus, current);
      pool.push_back(current);
    }
    took = std::chrono::steady_clock::now() - begin;
  }
  std::printf("%llu mutations of %zu seeds and %zu kept inputs, %.0f a second, seed %u; %zu places, %zu new inputs\n",
              static_cast<unsigned long long>(count), seeds, known - seeds, static_cast<double>(count) / took.count(),
              seed, covered.count(), pool.size() - known);
}
