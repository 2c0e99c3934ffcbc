// Conversion between placements (also TorchGroup) and their Protobuf messages.
#ifndef RENDEZVOUS_TRANSPORT_PLACEMENT_MESSAGE_H_
#define RENDEZVOUS_TRANSPORT_PLACEMENT_MESSAGE_H_

#include "proto/placement.pb.h"
#include "rendezvous/placement/placement.h"
#include "rendezvous/placement/torch_variables.h"

namespace hvd::rendezvous::transport {

pb::Placement ToMessage(const placement::Placement& place);
placement::Placement FromMessage(const pb::Placement& message);

pb::TorchGroup ToMessage(const placement::TorchGroup& group);
placement::TorchGroup FromMessage(const pb::TorchGroup& message);

}  // namespace hvd::rendezvous::transport

#endif  // RENDEZVOUS_TRANSPORT_PLACEMENT_MESSAGE_H_
