#include "rendezvous/placement/placement_variables.h"

#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::placement {

// Uses a structured binding, so that a new field does not compile until it is added here.
std::map<std::string, std::string> PlacementVariables(const Placement& place) {
  const auto& [rank, size, local_rank, local_size, cross_rank, cross_size] = place;
  return {
      {"HOROVOD_RANK", absl::StrCat(rank)},
      {"HOROVOD_SIZE", absl::StrCat(size)},
      {"HOROVOD_LOCAL_RANK", absl::StrCat(local_rank)},
      {"HOROVOD_LOCAL_SIZE", absl::StrCat(local_size)},
      {"HOROVOD_CROSS_RANK", absl::StrCat(cross_rank)},
      {"HOROVOD_CROSS_SIZE", absl::StrCat(cross_size)},
  };
}

}  // namespace hvd::rendezvous::placement
