// Fuzz target: the variables and files by which schedulers describe a job.
#include "absl/strings/str_split.h"
#include "launcher/allocation/find_allocation.h"
#include "launcher/allocation/host_files.h"
#include "tests/support/fuzzing.h"

namespace hvd::launcher::allocation {
namespace {

void CheckCounts(const absl::StatusOr<HostCounts>& hosts) {
  if (!hosts.ok()) return RequireOneLine(hosts.status());
  Require(!hosts->empty(), "there is a host");
  for (const auto& [name, slots] : *hosts) Require(!name.empty() && slots >= 1, "it has slots");
}

void CheckFile(absl::string_view file) {
  CheckCounts(ParseRepeatedHosts(file));
  CheckCounts(ParseHostsAndCounts(file));
  CheckCounts(ParsePeHostfile(file));
}

void CheckAllocation(absl::string_view variables, absl::string_view file) {
  Environment environment;
  for (const absl::string_view line : absl::StrSplit(variables, '\n', absl::SkipEmpty())) {
    environment.insert(absl::StrSplit(line, absl::MaxSplits('=', 1)));
  }
  const auto found = FindAllocation(
      environment, [&](const std::string&) { return std::make_optional(std::string(file)); });
  if (!found.ok()) return RequireOneLine(found.status());
  if (!found->has_value()) return;
  RequireOneLine((*found)->job);
  RequireOneLine((*found)->source);
  Require(!(*found)->hosts.empty(), "a job has hosts");
  for (const AllocatedHost& host : (*found)->hosts) {
    Require(!host.name.empty() && host.name[0] != '-', "a host has a name");
    Require(host.slots >= 1 && host.gpus >= 0, "it has slots");
  }
}

}  // namespace
}  // namespace hvd::launcher::allocation

// Lines NAME=VALUE, an empty line, and the contents of each file that they name.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text = hvd::AsText(data, size);
  const size_t end = text.find("\n\n");
  const absl::string_view file =
      end == absl::string_view::npos ? absl::string_view() : text.substr(end + 2);
  hvd::launcher::allocation::CheckFile(file);
  hvd::launcher::allocation::CheckAllocation(text.substr(0, end), file);
  return 0;
}
