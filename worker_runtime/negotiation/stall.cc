#include "worker_runtime/negotiation/stall.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/duration_text.h"
#include "worker_runtime/negotiation/operation_text.h"

namespace hvd::worker_runtime::negotiation {
namespace {

// The factor by which a stall's age must have grown to be reported again.
constexpr int kAgain = 5;
constexpr size_t kMostGroups = 4;

using Entry = const Readiness::Tensors::value_type*;

// Returns the waiting tensors, oldest first. Equally old ones are sorted by name, so that the
// report does not depend on the hash table's order.
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

// Returns the text for the operation of an entry.
std::string NameOf(Entry entry) {
  const auto& by_rank = entry->second.by_rank;
  const auto submitted = std::find_if(by_rank.begin(), by_rank.end(),
                                      [](const SignaturePtr& s) { return s != nullptr; });
  return OperationText((*submitted)->op, entry->first);
}

// Groups the entries that have waited for `at_least` by the ranks that they wait for.
// REQUIRES: `entries` has the oldest first.
StallReport Gather(const Readiness& readiness, const std::vector<Entry>& entries,
                   absl::Duration at_least, absl::Time now) {
  StallReport report;
  report.waited = now - entries.front()->second.since;
  std::vector<int> more;  // by group
  for (Entry entry : entries) {
    if (entry->second.since + at_least > now) break;
    std::vector<int> missing = readiness.Missing(entry->second);
    const auto group =
        std::find_if(report.waiting.begin(), report.waiting.end(),
                     [&missing](const StalledGroup& g) { return g.missing == missing; });
    if (group != report.waiting.end()) {
      ++more[group - report.waiting.begin()];
    } else if (report.waiting.size() < kMostGroups) {
      report.waiting.push_back({NameOf(entry), std::move(missing)});
      more.push_back(0);
    }
  }
  for (size_t i = 0; i < more.size(); ++i) {
    if (more[i] > 0) absl::StrAppend(&report.waiting[i].what, " and ", more[i], " more");
  }
  return report;
}

}  // namespace

std::string StallText(const StallReport& report) {
  const std::string waiting =
      absl::StrJoin(report.waiting, "; ", [](std::string* out, const StalledGroup& group) {
        absl::StrAppend(out, "in ", group.what, ", waiting for ", RanksText(group.missing));
      });
  return absl::StrCat("Stalled for ", text::DurationText(report.waited), " ", waiting);
}

StallInspector::StallInspector(const settings::EngineEnv& settings)
    : warn_after_(settings.stall_check ? NeverIfZero(settings.stall_warning_time)
                                       : absl::InfiniteDuration()),
      give_up_after_(NeverIfZero(settings.stall_shutdown_time)) {}

void StallInspector::Watch(absl::Time now) {
  // A new tensor can only be due later than what is planned already.
  if (next_look_ != absl::InfiniteFuture() || gave_up_) return;
  next_look_ = now + std::min(warn_after_, give_up_after_);
}

absl::Time StallInspector::DueAt(absl::Time since, const std::vector<int>& missing,
                                 absl::Time oldest) const {
  // The last warning was about the current stall only if the oldest operation was due then. Ranks
  // that it named are reported again after a multiple of the stall's age at that time.
  const bool goes_on = oldest + warn_after_ <= last_warning_;
  const bool told = goes_on && std::all_of(missing.begin(), missing.end(),
                                           [this](int rank) { return told_.count(rank) > 0; });
  return told ? oldest + kAgain * (last_warning_ - oldest) : since + warn_after_;
}

StallReport StallInspector::Look(const Readiness& readiness, absl::Time now) {
  StallReport report;
  next_look_ = absl::InfiniteFuture();
  const std::vector<Entry> entries = OldestFirst(readiness);
  if (entries.empty()) return report;
  const absl::Time oldest = entries.front()->second.since;
  if (oldest + give_up_after_ <= now) {
    gave_up_ = true;
    report = Gather(readiness, entries, give_up_after_, now);
    report.give_up = true;
    return report;
  }
  const auto first_due = [&] {
    absl::Time due = absl::InfiniteFuture();
    for (Entry entry : entries) {
      const Readiness::Tensor& tensor = entry->second;
      due = std::min(due, DueAt(tensor.since, readiness.Missing(tensor), oldest));
    }
    return due;
  };
  if (first_due() <= now) {
    report = Gather(readiness, entries, warn_after_, now);
    last_warning_ = now;
    told_.clear();
    for (const StalledGroup& group : report.waiting) {
      told_.insert(group.missing.begin(), group.missing.end());
    }
  }
  // A tensor submitted after this inspection can't be due before the shorter of the two limits has
  // passed, so no submission needs to reschedule.
  next_look_ =
      std::min({first_due(), oldest + give_up_after_, now + std::min(warn_after_, give_up_after_)});
  return report;
}

}  // namespace hvd::worker_runtime::negotiation
