#include "rendezvous/placement/torch_variables.h"

#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::placement {

std::map<std::string, std::string> TorchVariables(const Placement& place, const TorchGroup& group) {
  if (group.groups == 0) return {};
  return {
      {"RANK", absl::StrCat(place.rank)},
      {"WORLD_SIZE", absl::StrCat(place.size)},
      {"LOCAL_RANK", absl::StrCat(place.local_rank)},
      {"LOCAL_WORLD_SIZE", absl::StrCat(place.local_size)},
      {"GROUP_RANK", absl::StrCat(group.group_rank)},
      {"GROUP_WORLD_SIZE", absl::StrCat(group.groups)},
      {"ROLE_RANK", absl::StrCat(place.rank)},
      {"ROLE_WORLD_SIZE", absl::StrCat(place.size)},
  };
}

}  // namespace hvd::rendezvous::placement
