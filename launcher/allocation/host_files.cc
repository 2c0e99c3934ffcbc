#include "launcher/allocation/host_files.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "launcher/allocation/excerpt.h"

namespace hvd::launcher::allocation {
namespace {

using Words = std::vector<absl::string_view>;

constexpr int kMostSlots = 1 << 16;

Words SplitWords(absl::string_view text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
}

bool IsName(absl::string_view text) {
  // A leading '-' would be an option for the command that starts the agent. `text` is not empty: it
  // is a word.
  return text[0] != '-' && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
         });
}

absl::Status Add(absl::string_view name, int slots, HostCounts* hosts) {
  if (!IsName(name))
    return absl::InvalidArgumentError(absl::StrCat("'", Excerpt(name), "' is no host name"));
  const auto known = std::find_if(hosts->begin(), hosts->end(),
                                  [&](const auto& host) { return host.first == name; });
  if (known == hosts->end()) {
    hosts->emplace_back(name, slots);
  } else {
    known->second = std::min(known->second + slots, kMostSlots);
  }
  return absl::OkStatus();
}

absl::Status AddCounted(absl::string_view name, absl::string_view count, HostCounts* hosts) {
  int slots = 0;
  if (!absl::SimpleAtoi(count, &slots) || slots < 1 || slots > kMostSlots) {
    return absl::InvalidArgumentError(absl::StrCat("'", Excerpt(count), "' is no number of slots"));
  }
  return Add(name, slots, hosts);
}

absl::StatusOr<HostCounts> NotEmpty(HostCounts hosts) {
  if (hosts.empty()) return absl::InvalidArgumentError("it lists no host");
  return hosts;
}

}  // namespace

absl::StatusOr<HostCounts> ParseRepeatedHosts(absl::string_view text) {
  HostCounts hosts;
  for (const absl::string_view name : SplitWords(text)) RETURN_IF_ERROR(Add(name, 1, &hosts));
  return NotEmpty(std::move(hosts));
}

absl::StatusOr<HostCounts> ParseHostsAndCounts(absl::string_view text) {
  const Words words = SplitWords(text);
  if (words.size() % 2 != 0) {
    return absl::InvalidArgumentError("it is no list of hosts, each with a number of slots");
  }
  HostCounts hosts;
  for (size_t i = 0; i < words.size(); i += 2) {
    RETURN_IF_ERROR(AddCounted(words[i], words[i + 1], &hosts));
  }
  return NotEmpty(std::move(hosts));
}

absl::StatusOr<HostCounts> ParsePeHostfile(absl::string_view text) {
  HostCounts hosts;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const Words words = SplitWords(line);
    if (words.empty()) continue;
    if (words.size() == 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", Excerpt(line), "' has no number of slots"));
    }
    RETURN_IF_ERROR(AddCounted(words[0], words[1], &hosts));
  }
  return NotEmpty(std::move(hosts));
}

}  // namespace hvd::launcher::allocation
