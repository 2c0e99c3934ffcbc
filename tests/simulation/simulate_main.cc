// Runs many simulated jobs, on all cores, or repeats one with its trace:
//   bazel run -c opt //tests/simulation:simulate -- --seeds 1000000 [--first N] [--jobs N]
//   bazel run -c opt //tests/simulation:simulate -- --seed N --trace
//   bazel run -c opt //tests/simulation:simulate -- --seeds 20000 --digest
// With --digest it also prints a number that stays the same while the jobs of these seeds take the
// same course, effect by effect: a change that is to change no behaviour keeps it.
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/simulation/control_plane.h"

namespace hvd {
namespace {

struct Options {
  uint64_t first = 1;
  uint64_t seeds = 10000;
  uint64_t jobs = std::thread::hardware_concurrency();
  bool trace = false;
  bool digest = false;
};

// FNV-1a, which is the same on every machine.
uint64_t HashOf(absl::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view flag = argv[i];
    if (flag == "--trace" || flag == "--digest") {
      (flag == "--trace" ? options->trace : options->digest) = true;
      continue;
    }
    uint64_t number = 0;
    if (i + 1 >= argc || !absl::SimpleAtoi(argv[++i], &number)) return false;
    if (flag == "--seed") {
      options->first = number;
      options->seeds = 1;
    } else if (flag == "--first") {
      options->first = number;
    } else if (flag == "--seeds") {
      options->seeds = number;
    } else if (flag == "--jobs") {
      options->jobs = number;
    } else {
      return false;
    }
  }
  return options->jobs > 0;
}

// Returns whether all runs were right. The first few failures are printed.
bool RunAll(const Options& options) {
  std::atomic<uint64_t> next{options.first};
  std::mutex mutex;  // guards total, digest and failures
  ControlPlane::Tally total;
  uint64_t digest = 0;  // the sum over the seeds, whose order differs between runs
  int failures = 0;
  const bool traced = options.trace || options.digest;
  const auto work = [&] {
    ControlPlane::Tally own;
    uint64_t own_digest = 0;
    for (uint64_t seed; (seed = next++) < options.first + options.seeds;) {
      std::string trace;
      const std::string wrong = RunWithSuccessors(seed, traced, &own, &trace);
      if (options.trace) std::fputs(trace.c_str(), stdout);
      own_digest += HashOf(absl::StrCat(seed, "\n", trace));
      if (wrong.empty()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      if (++failures <= 10) std::printf("seed %" PRIu64 ": %s\n", seed, wrong.c_str());
      if (failures == 10) next = options.first + options.seeds;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    total.Add(own);
    digest += own_digest;
  };
  std::vector<std::thread> threads;
  for (uint64_t job = 0; job < options.jobs; ++job) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  std::printf("%s", total.ToText().c_str());
  if (options.digest) std::printf("digest %016" PRIx64 "\n", digest);
  std::printf("%d failed\n", failures);
  return failures == 0;
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) {
  hvd::Options options;
  if (!hvd::Parse(argc, argv, &options)) {
    std::fprintf(
        stderr,
        "usage: simulate [--seeds N] [--first N] [--jobs N] [--seed N] [--trace] [--digest]\n");
    return 2;
  }
  return hvd::RunAll(options) ? 0 : 1;
}
