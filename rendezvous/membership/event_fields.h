// The mapping of events and their parts to the messages of proto/journal.proto and
// proto/snapshot.proto: one KeepFields function per type, as rendezvous/snapshot/fields.h
// describes.
#ifndef RENDEZVOUS_MEMBERSHIP_EVENT_FIELDS_H_
#define RENDEZVOUS_MEMBERSHIP_EVENT_FIELDS_H_

#include "rendezvous/membership/events.h"
#include "rendezvous/placement/placement_fields.h"
#include "rendezvous/snapshot/fields.h"

namespace hvd::rendezvous::membership {

template <typename Fields>
void KeepFields(Fields& fields, WorkerKey& kept) {
  auto& [id, incarnation] = kept;
  fields("id", id, "incarnation", incarnation);
}

template <typename Fields>
void KeepFields(Fields& fields, HostJoined& kept) {
  auto& [host, agent, known_workers, store_address, commit_address, commit] = kept;
  fields("host", host, "agent", agent, "known_workers", known_workers, "store_address",
         store_address, "commit_address", commit_address, "commit", commit);
}

template <typename Fields>
void KeepFields(Fields& fields, HostLost& kept) {
  auto& [host, agent, reason] = kept;
  fields("host", host, "agent", agent, "reason", reason);
}

template <typename Fields>
void KeepFields(Fields& fields, HostsDiscovered& kept) {
  auto& [hosts, is_offer] = kept;
  fields("hosts", hosts, "is_offer", is_offer);
}

template <typename Fields>
void KeepFields(Fields& fields, HostDraining& kept) {
  auto& [host, grace, reason, at_once] = kept;
  fields("host", host, "grace_ns", grace, "reason", reason, "at_once", at_once);
}

template <typename Fields>
void KeepFields(Fields&, Restarted&) {}

template <typename Fields>
void KeepFields(Fields& fields, WorkerStarted& kept) {
  auto& [worker, pid] = kept;
  fields("worker", worker, "pid", pid);
}

template <typename Fields>
void KeepFields(Fields& fields, WorkerExited& kept) {
  auto& [worker, exit_code, signal, core_dumped, out_of_memory, stderr_tail, start_error,
         killed_for, unknown_end] = kept;
  fields("worker", worker, "exit_code", exit_code, "signal", signal, "core_dumped", core_dumped,
         "out_of_memory", out_of_memory, "stderr_tail", stderr_tail, "start_error", start_error,
         "killed_for", killed_for, "unknown_end", unknown_end);
}

template <typename Fields>
void KeepFields(Fields& fields, CommitLeft& kept) {
  auto& [host, commit] = kept;
  fields("host", host, "commit", commit);
}

template <typename Fields>
void KeepFields(Fields& fields, CommitKept& kept) {
  auto& [host, commit, failure] = kept;
  fields("host", host, "commit", commit, "failure", failure);
}

template <typename Fields>
void KeepFields(Fields& fields, JoinRequested& kept) {
  auto& [call, worker, last_epoch, address, port, may_defer, commit, worked, left_for, lost_steps,
         lost_time, caused_by_peer, unreached] = kept;
  fields("call", call, "worker", worker, "last_epoch", last_epoch, "address", address, "port", port,
         "may_defer", may_defer, "commit", commit, "worked", worked, "left_for", left_for,
         "lost_steps", lost_steps, "lost_time_ns", lost_time, "caused_by_peer", caused_by_peer,
         "unreached", unreached);
}

template <typename Fields>
void KeepFields(Fields& fields, WatchRequested& kept) {
  auto& [call, worker, epoch, knows_of_change] = kept;
  fields("call", call, "worker", worker, "epoch", epoch, "knows_of_change", knows_of_change);
}

template <typename Fields>
void KeepFields(Fields& fields, ExchangeRequested& kept) {
  auto& [call, worker, epoch, key, value] = kept;
  fields("call", call, "worker", worker, "epoch", epoch, "key", key, "value", value);
}

template <typename Fields>
void KeepFields(Fields& fields, Reported& kept) {
  auto& [call, worker, epoch, finished, failure, caused_by_peer, commit] = kept;
  fields("call", call, "worker", worker, "epoch", epoch, "finished", finished, "failure", failure,
         "caused_by_peer", caused_by_peer, "commit", commit);
}

template <typename Fields>
void KeepFields(Fields& fields, Checkpoints& kept) {
  auto& [commit, age, place, failure] = kept;
  fields("commit", commit, "age_ns", age, "place", place, "failure", failure);
}

template <typename Fields>
void KeepFields(Fields& fields, ProgressReported& kept) {
  auto& [call, worker, epoch, commit, commit_age, began_with, checkpoints] = kept;
  fields("call", call, "worker", worker, "epoch", epoch, "commit", commit, "commit_age_ns",
         commit_age, "began_with", began_with, "checkpoints", checkpoints);
}

template <typename Fields>
void KeepFields(Fields& fields, StalledOperations& kept) {
  auto& [what, missing] = kept;
  fields("what", what, "missing", missing);
}

template <typename Fields>
void KeepFields(Fields& fields, StallReported& kept) {
  auto& [call, worker, epoch, waited, give_up, waiting] = kept;
  fields("call", call, "worker", worker, "epoch", epoch, "waited_ns", waited, "give_up", give_up,
         "waiting", waiting);
}

template <typename Fields>
void KeepFields(Fields& fields, WorkerSampled& kept) {
  auto& [worker, doing, stack] = kept;
  fields("worker", worker, "doing", doing, "stack", stack);
}

template <typename Fields>
void KeepFields(Fields& fields, StopRequested& kept) {
  auto& [reason, exit_code, grace, keeps_world, at_commit] = kept;
  fields("reason", reason, "exit_code", exit_code, "grace_ns", grace, "keeps_world", keeps_world,
         "at_commit", at_commit);
}

template <typename Fields>
void KeepFields(Fields&, Tick&) {}

template <typename Fields>
void KeepFields(Fields& fields, LimitsChanged& kept) {
  auto& [min_workers, max_workers] = kept;
  fields("min_workers", min_workers, "max_workers", max_workers);
}

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
  auto& [kind, epoch, host, worker, rank, size, commit, lost_steps, lost_time, text] = kept;
  fields("kind", kind, "epoch", epoch, "host", host, "worker", worker, "rank", rank, "size", size,
         "commit", commit, "lost_steps", lost_steps, "lost_time_ns", lost_time, "text", text);
}

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_EVENT_FIELDS_H_
