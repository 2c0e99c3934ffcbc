#include "launcher/plan/visible_gpus.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace hvd::launcher::plan {
namespace {

// "nvidia3", but not "nvidiactl" or "nvidia-uvm".
bool IsGpu(absl::string_view name) {
  return absl::ConsumePrefix(&name, "nvidia") && !name.empty() &&
         std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

int CountGpus(const std::string& folder) {
  int gpus = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IsGpu(entry->path().filename().string())) ++gpus;
  }
  return gpus;
}

// Indexes count within the GPUs that are there; a container may have them under other numbers.
bool IsDevice(absl::string_view entry, int gpus) {
  int index = 0;
  if (absl::SimpleAtoi(entry, &index)) return index >= 0 && index < gpus;
  return absl::StartsWith(entry, "GPU-") || absl::StartsWith(entry, "MIG-");
}

}  // namespace

int VisibleGpus(const std::optional<std::string>& visible, const std::string& folder) {
  const int gpus = CountGpus(folder);
  if (!visible.has_value() || gpus == 0) return gpus;
  int seen = 0;
  for (const absl::string_view entry : absl::StrSplit(*visible, ',')) {
    if (!IsDevice(absl::StripAsciiWhitespace(entry), gpus)) break;
    ++seen;
  }
  return seen;
}

}  // namespace hvd::launcher::plan
