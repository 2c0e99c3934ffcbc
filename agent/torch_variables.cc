#include "agent/torch_variables.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/address.h"

namespace hvd::agent {

void SetTorchVariables(const pb::StartWorker& start,
                       std::map<std::string, std::string>* environment) {
  const pb::TorchGroup& group = start.torch();
  if (group.groups() == 0) return;
  const pb::Placement& place = start.placement();
  const std::pair<const char*, int> numbers[] = {
      {"RANK", place.rank()},
      {"WORLD_SIZE", place.size()},
      {"LOCAL_RANK", place.local_rank()},
      {"LOCAL_WORLD_SIZE", place.local_size()},
      {"GROUP_RANK", group.group_rank()},
      {"GROUP_WORLD_SIZE", group.groups()},
      {"ROLE_RANK", place.rank()},
      {"ROLE_WORLD_SIZE", place.size()},
  };
  for (const auto& [name, number] : numbers) (*environment)[name] = absl::StrCat(number);
  if (group.store_address().empty()) return;
  const net::HostPort store = net::SplitHostPort(group.store_address());
  environment->emplace("MASTER_ADDR", store.host);
  environment->emplace("MASTER_PORT", store.port);
}

}  // namespace hvd::agent
