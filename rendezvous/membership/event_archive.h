// The values of events.h and their kin in an archive. Structured bindings, so that a field that is
// added does not compile before it is kept.
#ifndef RENDEZVOUS_MEMBERSHIP_EVENT_ARCHIVE_H_
#define RENDEZVOUS_MEMBERSHIP_EVENT_ARCHIVE_H_

#include "rendezvous/membership/archive.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/placement/slot_plan.h"

namespace hvd::rendezvous::membership {

template <typename Archive>
void KeepFields(Archive& archive, HostSlots& value) {
  auto& [host, slots] = value;
  archive(host, slots);
}

template <typename Archive>
void KeepFields(Archive& archive, WorkerKey& value) {
  auto& [id, incarnation] = value;
  archive(id, incarnation);
}

template <typename Archive>
void KeepFields(Archive& archive, JoinRequested& value) {
  auto& [call, worker, last_epoch, address, control_port, may_defer, commit, worked, left_for,
         lost_steps, lost_time] = value;
  archive(call, worker, last_epoch, address, control_port, may_defer, commit);
  archive.Since(2, worked, left_for, lost_steps, lost_time);
}

template <typename Archive>
void KeepFields(Archive& archive, WatchRequested& value) {
  auto& [call, worker, epoch, knows_of_change] = value;
  archive(call, worker, epoch, knows_of_change);
}

template <typename Archive>
void KeepFields(Archive& archive, StalledOperations& value) {
  auto& [what, missing] = value;
  archive(what, missing);
}

template <typename Archive>
void KeepFields(Archive& archive, StallReported& value) {
  auto& [call, worker, epoch, waited, give_up, waiting] = value;
  archive(call, worker, epoch, waited, give_up, waiting);
}

template <typename Archive>
void KeepFields(Archive& archive, WorldMember& value) {
  auto& [worker, host, address, control_port, place, commit] = value;
  archive(worker, host, address, control_port, place.rank, place.local_rank, place.local_size,
          place.cross_rank, place.cross_size, commit);
}

template <typename Archive>
void KeepFields(Archive& archive, World& value) {
  auto& [epoch, members, sync_state, homogeneous] = value;
  archive(epoch, members, sync_state, homogeneous);
  for (WorldMember& member : members) member.place.size = static_cast<int>(members.size());
}

template <typename Archive>
void KeepFields(Archive& archive, Verdict& value) {
  auto& [success, exit_code, summary, rank, host, exit_meaning, exception, stderr_tail,
         consequences] = value;
  archive(success, exit_code, summary, rank, host, exit_meaning, exception, stderr_tail,
          consequences);
}

template <typename Archive>
void KeepFields(Archive& archive, Notice& value) {
  auto& [kind, epoch, host, worker, rank, size, commit, lost_steps, lost_time, text] = value;
  archive(kind, epoch, host, worker, rank, size, commit, text);
  archive.Since(2, lost_steps, lost_time);
}

template <typename Archive>
void KeepFields(Archive& archive, Placement& value) {
  auto& [rank, size, local_rank, local_size, cross_rank, cross_size] = value;
  archive(rank, size, local_rank, local_size, cross_rank, cross_size);
}

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EVENT_ARCHIVE_H_
