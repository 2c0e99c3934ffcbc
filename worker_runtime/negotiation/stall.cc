#include "worker_runtime/negotiation/stall.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

using Entry = const Readiness::Tensors::value_type*;

std::vector<int> Submitters(const Readiness::Tensor& tensor) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < tensor.by_rank.size(); ++rank) {
    if (tensor.by_rank[rank] != nullptr) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::string Describe(const Readiness& readiness, Entry entry, absl::Time now) {
  const Readiness::Tensor& tensor = entry->second;
  const std::vector<int> submitters = Submitters(tensor);
  return absl::StrCat(NameOf(tensor.by_rank[submitters.front()]->op), " '", entry->first,
                      "' was submitted by ", RanksText(submitters), " but not by ",
                      RanksText(readiness.Missing(tensor)), " for ",
                      absl::ToInt64Seconds(now - tensor.since), " s");
}

// Oldest first, by name where that is equal, so that the report does not depend on the table's
// order.
std::vector<Entry> OldestFirst(const Readiness& readiness) {
  std::vector<Entry> entries;
  for (const auto& entry : readiness.waiting()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), [](Entry a, Entry b) {
    return std::tie(a->second.since, a->first) < std::tie(b->second.since, b->first);
  });
  return entries;
}

absl::Duration NeverIfZero(absl::Duration duration) {
  return duration > absl::ZeroDuration() ? duration : absl::InfiniteDuration();
}

}  // namespace

StallInspector::StallInspector(const StallOptions& options)
    : options_{NeverIfZero(options.warn_after), NeverIfZero(options.give_up_after)} {}

void StallInspector::Watch(absl::Time now) {
  if (next_look_ != absl::InfiniteFuture()) return;
  next_look_ = now + std::min(options_.warn_after, options_.give_up_after);
}

StallReport StallInspector::Look(const Readiness& readiness, absl::Time now) {
  constexpr size_t kMostWarnings = 8;
  StallReport report;
  next_look_ = absl::InfiniteFuture();
  const std::vector<Entry> entries = OldestFirst(readiness);
  if (entries.empty()) return report;
  const absl::Time oldest = entries.front()->second.since;
  if (oldest + options_.give_up_after <= now) {
    report.give_up = Describe(readiness, entries.front(), now);
    return report;
  }
  const absl::Time warning_due = std::max(oldest, last_warning_) + options_.warn_after;
  if (warning_due <= now) {
    last_warning_ = now;
    for (Entry entry : entries) {
      if (entry->second.since + options_.warn_after > now) break;
      if (report.warnings.size() == kMostWarnings) break;
      report.warnings.push_back(Describe(readiness, entry, now));
    }
  }
  next_look_ = std::min(std::max(oldest, last_warning_) + options_.warn_after,
                        oldest + options_.give_up_after);
  return report;
}

}  // namespace hvd
