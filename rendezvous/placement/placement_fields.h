// The mapping of Placement and HostSlots to the messages of proto/placement.proto and
// proto/journal.proto, as rendezvous/snapshot/fields.h describes.
#ifndef RENDEZVOUS_PLACEMENT_PLACEMENT_FIELDS_H_
#define RENDEZVOUS_PLACEMENT_PLACEMENT_FIELDS_H_

#include "rendezvous/placement/placement.h"

namespace hvd::rendezvous::placement {

template <typename Fields>
void KeepFields(Fields& fields, HostSlots& kept) {
  auto& [host, slots, machine] = kept;
  fields("host", host, "slots", slots, "machine", machine);
}

template <typename Fields>
void KeepFields(Fields& fields, Placement& kept) {
  auto& [rank, size, local_rank, local_size, cross_rank, cross_size] = kept;
  fields("rank", rank, "size", size, "local_rank", local_rank, "local_size", local_size,
         "cross_rank", cross_rank, "cross_size", cross_size);
}

}  // namespace hvd::rendezvous::placement

#endif  // RENDEZVOUS_PLACEMENT_PLACEMENT_FIELDS_H_
