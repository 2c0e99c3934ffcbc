// The mapping of those effects and their parts that a snapshot holds to the messages of
// proto/snapshot.proto, as rendezvous/snapshot/fields.h describes.
#ifndef RENDEZVOUS_MEMBERSHIP_EFFECT_FIELDS_H_
#define RENDEZVOUS_MEMBERSHIP_EFFECT_FIELDS_H_

#include "rendezvous/membership/event_fields.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/placement/placement_fields.h"
#include "rendezvous/snapshot/fields.h"

namespace hvd::rendezvous::membership {

template <typename Fields>
void KeepFields(Fields& fields, WorldMember& kept) {
  auto& [worker, host, address, port, place, commit] = kept;
  fields("worker", worker, "host", host, "address", address, "port", port, "place", place, "commit",
         commit);
}

template <typename Fields>
void KeepFields(Fields& fields, World& kept) {
  auto& [epoch, members, sync_state, homogeneous] = kept;
  fields("epoch", epoch, "members", members, "sync_state", sync_state, "homogeneous", homogeneous);
}

template <typename Fields>
void KeepFields(Fields& fields, Verdict& kept) {
  auto& [success, exit_code, summary, rank, host, exit_meaning, exception, stderr_tail,
         consequences] = kept;
  fields("success", success, "exit_code", exit_code, "summary", summary, "rank", rank, "host", host,
         "exit_meaning", exit_meaning, "exception", exception, "stderr_tail", stderr_tail,
         "consequences", consequences);
}

template <typename Fields>
void KeepFields(Fields& fields, Notice& kept) {
  auto& [kind, epoch, host, worker, rank, size, commit, lost_steps, lost_time, starts_anew, text] =
      kept;
  fields("kind", kind, "epoch", epoch, "host", host, "worker", worker, "rank", rank, "size", size,
         "commit", commit, "lost_steps", lost_steps, "lost_time_ns", lost_time, "starts_anew",
         starts_anew, "text", text);
}

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EFFECT_FIELDS_H_
