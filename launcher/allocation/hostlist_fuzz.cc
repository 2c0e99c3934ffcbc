// Fuzz target: Slurm's lists of nodes, and its lists of numbers for them.
#include "absl/strings/str_join.h"
#include "launcher/allocation/hostlist.h"
#include "launcher/allocation/slurm_allocation.h"
#include "tests/support/fuzzing.h"

namespace hvd::launcher::allocation {
namespace {

constexpr size_t kMostHosts = 1 << 16;

void CheckNames(absl::string_view text) {
  const auto names = ExpandHostlist(text);
  if (!names.ok()) return RequireOneLine(names.status());
  Require(names->size() <= kMostHosts, "there are no more than a job can have");
  const auto again = ExpandHostlist(absl::StrJoin(*names, ","));
  Require(again.ok() && *again == *names, "a list of names is what it names");
}

void CheckCounts(absl::string_view text) {
  const auto counts = ParseNodeCounts(text);
  if (!counts.ok()) return RequireOneLine(counts.status());
  Require(counts->size() <= 2 * kMostHosts, "there are no more than a job can have");
  for (const int count : *counts) Require(count > 0, "a node has tasks");
  const auto again = ParseNodeCounts(absl::StrJoin(*counts, ","));
  Require(again.ok() && *again == *counts, "a list of numbers is what it lists");
}

}  // namespace
}  // namespace hvd::launcher::allocation

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = hvd::AsText(data, size);
  hvd::launcher::allocation::CheckNames(text);
  hvd::launcher::allocation::CheckCounts(text);
  return 0;
}
