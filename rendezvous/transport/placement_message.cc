#include "rendezvous/transport/placement_message.h"

namespace hvd::rendezvous::transport {

// Uses structured bindings, so that a new field does not compile until it is added here.
pb::Placement ToMessage(const placement::Placement& place) {
  const auto& [rank, size, local_rank, local_size, cross_rank, cross_size] = place;
  pb::Placement message;
  message.set_rank(rank);
  message.set_size(size);
  message.set_local_rank(local_rank);
  message.set_local_size(local_size);
  message.set_cross_rank(cross_rank);
  message.set_cross_size(cross_size);
  return message;
}

placement::Placement FromMessage(const pb::Placement& message) {
  return {message.rank(),       message.size(),       message.local_rank(),
          message.local_size(), message.cross_rank(), message.cross_size()};
}

pb::TorchGroup ToMessage(const placement::TorchGroup& group) {
  const auto& [store_address, group_rank, groups] = group;
  pb::TorchGroup message;
  message.set_store_address(store_address);
  message.set_group_rank(group_rank);
  message.set_groups(groups);
  return message;
}

placement::TorchGroup FromMessage(const pb::TorchGroup& message) {
  return {message.store_address(), message.group_rank(), message.groups()};
}

}  // namespace hvd::rendezvous::transport
