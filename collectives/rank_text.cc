#include "collectives/rank_text.h"

#include "absl/strings/str_cat.h"
#include "collectives/unreached_rank.h"

namespace hvd::collectives {

std::string RankText(absl::string_view backend, int rank, int size, Epoch epoch) {
  return absl::StrCat(backend, ", rank ", rank, " of ", size, ", epoch ", epoch.value());
}

absl::Status ConnectError(absl::string_view backend, const GroupInfo& group,
                          const absl::Status& why) {
  const std::string who = RankText(backend, group.rank, group.size, group.epoch);
  return WithText(why, absl::StrCat("connecting (", who, "): ", why.message()));
}

}  // namespace hvd::collectives
