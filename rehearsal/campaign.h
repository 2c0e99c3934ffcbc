// A campaign of faults: the file of horovodrun --inject (docs/rehearsal.md). Pure.
#ifndef REHEARSAL_CAMPAIGN_H_
#define REHEARSAL_CAMPAIGN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/settings/on_corruption.h"
#include "rehearsal/fault_kinds.h"

namespace hvd::rehearsal {

struct Fault {
  FaultKind kind = FaultKind::kKill;
  std::string place;  // in the file: "campaign.json:3:5"

  // When it is due: one of the two.
  std::optional<uint64_t> step;        // as soon as this commit is complete
  std::optional<absl::Duration> time;  // since training began
  bool is_random = false;              // `time` was drawn

  // Its target. Neither: drawn when it is due.
  std::optional<int> rank;
  std::string host;  // a random rank there, or the host; empty: not given

  absl::Duration lasts;  // zero: for good, or the kind has no such time
  absl::Duration delay;
  absl::Duration grace;                 // of a preemption; zero: the job's own
  std::optional<absl::Duration> limit;  // until training has gone on, in place of the kind's own
};

struct Campaign {
  uint64_t seed = 0;
  std::vector<Fault> faults;  // in the order of the file
};

// The largest file, in MiB.
inline constexpr size_t kMostCampaignMib = 1;

// Reads a campaign. `file` is its name, for messages.
// Errors:
//   - InvalidArgument: "FILE:3:12: ", and what is wrong there.
absl::StatusOr<Campaign> ParseCampaign(absl::string_view text, absl::string_view file);

// What a campaign must fit.
struct JobFacts {
  std::vector<std::string> hosts;  // empty: they are found later
  int max_workers = 0;
  settings::OnCorruption on_corruption = settings::OnCorruption::kWarn;
};

// Checks what can be known before the job starts.
// Errors:
//   - InvalidArgument: a fault can't happen in this job; names its place.
absl::Status CheckCampaign(const Campaign& campaign, const JobFacts& job);

// A number from 0 to `count` - 1, always the same for a seed and an index. REQUIRES: count > 0.
uint64_t Draw(uint64_t seed, uint64_t index, uint64_t count);

}  // namespace hvd::rehearsal

#endif  // REHEARSAL_CAMPAIGN_H_
