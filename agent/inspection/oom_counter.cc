#include "agent/inspection/oom_counter.h"

#include <fstream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hvd::agent::inspection {
namespace {

std::string CgroupOf(pid_t pid, const std::string& root) {
  std::ifstream file(absl::StrCat(root, "/proc/", pid, "/cgroup"));
  for (std::string line; std::getline(file, line);) {
    absl::string_view path = line;
    if (absl::ConsumePrefix(&path, "0::")) return std::string(path);
  }
  return "/";
}

// Both files consist of lines "key value" and use the same key for this counter.
std::optional<uint64_t> ReadCount(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    absl::string_view text = line;
    uint64_t count = 0;
    if (absl::ConsumePrefix(&text, "oom_kill ") && absl::SimpleAtoi(text, &count)) return count;
  }
  return std::nullopt;
}

}  // namespace

OomCounter::OomCounter(pid_t pid, const std::string& root) {
  for (const std::string& path :
       {absl::StrCat(root, "/sys/fs/cgroup", CgroupOf(pid, root), "/memory.events"),
        absl::StrCat(root, "/proc/vmstat")}) {
    const std::optional<uint64_t> count = ReadCount(path);
    if (!count.has_value()) continue;
    file_ = path;
    start_ = *count;
    return;
  }
}

bool OomCounter::HasGrown() const {
  return !file_.empty() && ReadCount(file_).value_or(start_) > start_;
}

}  // namespace hvd::agent::inspection
