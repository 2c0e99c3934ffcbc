// Handlers of the workers' calls: JoinWorld, WatchEpoch, Exchange, Report and cancellation.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "rendezvous/membership/callers.h"
#include "rendezvous/membership/transitions/membership_state.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {

// CheckSpeaker; also registers a process that was not seen before as the worker's current one.
absl::Status Membership::State::Admit(const WorkerKey& key, Worker* worker) {
  RETURN_IF_ERROR(CheckSpeaker(*this, key, worker));
  if (worker->incarnation != key.incarnation) Supersede(worker, key.incarnation);
  return absl::OkStatus();
}

// Makes `newer` the worker's current process. A command may run several processes in a row (`sh -c
// 'python a.py && python b.py'`): one worker, several incarnations. A late call of the earlier
// process must not be mistaken for one of the new process, so earlier incarnations are remembered.
void Membership::State::Supersede(Worker* worker, Incarnation newer) {
  if (worker->incarnation.has_value()) {
    worker->superseded.insert(*worker->incarnation);
    EndCallsOf(worker, absl::FailedPreconditionError(absl::StrCat(
                           "a newer process of ", Name(*worker), " has replaced this one")));
    if (worker->life.member()) {
      BreakEpoch(absl::StrCat("another process of ", Name(*worker), " has called hvd.init()"));
    }
  }
  worker->incarnation = newer;
  ResetFailing(worker, Move::kReplace);
}

// A request for the next world. It is a repetition if the worker is a member of the current,
// unbroken epoch, but names an older one as its last world: the answer to its first request was
// lost, so it gets the same world again.
void Membership::State::On(const JoinRequested& event, absl::Time now) {
  Worker* worker = workers.Find(event.worker.id);
  if (elastic() && verdict.has_value() &&
      verdict->success) {  // the job succeeded before this worker was needed
    effects.push_back(ReplyReleased{event.call, verdict->summary});
    return;
  }
  if (absl::Status status = Admit(event.worker, worker); !status.ok()) {
    return Answer(event.call, std::move(status));
  }
  if (event.last_epoch > epochs.current) {
    return Answer(event.call, absl::FailedPreconditionError(absl::StrCat(
                                  Name(*worker), " was in world ", event.last_epoch.value(),
                                  ", which this job has not had")));
  }
  const bool answer_was_lost = worker->life.member() && !epochs.broken.has_value() &&
                               event.last_epoch < epochs.current &&
                               CheckMember(*this, event.worker, *worker, epochs.current).ok();
  if (answer_was_lost) {
    effects.push_back(ReplyWorld{event.call, epochs.world, worker->place.rank});
    return;
  }
  if (elastic() && DeferOrRelease(worker, event)) return;
  Park(worker, event, now);
  if (elastic()) return;
  FormWorldWhenAllAsked();
  if (workers.live < static_cast<int>(workers.size())) FailIfNoWorldCanForm(now);
}

void Membership::State::Park(Worker* worker, const JoinRequested& event, absl::Time now) {
  if (worker->join.has_value()) {
    Answer(worker->join->call,
           absl::CancelledError(absl::StrCat(Name(*worker), " has asked again in another call")));
  }
  Leave(*worker, event);
  worker->join = event;
  worker->commit = event.commit;
  worker->ready_since = now;
  // It asks for a world, so an earlier error is void; see UndoDrain.
  const bool was_doomed = !worker->exception.empty() && !HostOf(*worker).drain.has_value();
  if (was_doomed && !worker->life.leaving()) worker->stop_at = absl::InfiniteFuture();
  worker->exception.clear();
  ResetFailing(worker, Move::kGoOn);
  worker->caused_by_peer = false;
  root_cause.Retract(worker->place.rank);
  // A member that asks for the next world has left this one, so collectives with it can't complete.
  // Exceptions: a member that has finished left cleanly, and the others may be about to finish too;
  // and during a planned change all members are about to ask at the same step.
  if (worker->life.member() && !epochs.changing.has_value()) {
    // The loss of a peer is left out: what the daemon knows of the peer says more.
    const bool says_why = !event.left_for.empty() && !event.caused_by_peer;
    const std::string why = says_why ? ": " + phrases::OneLine(event.left_for) : "";
    BreakEpoch(absl::StrCat(Name(*worker), " asks for the next world", why));
  }
}

// Merges the member's report about the newest world into epochs.left. REQUIRES: `event` is its
// request for the next world.
void Membership::State::Leave(const Worker& worker, const JoinRequested& event) {
  if (epochs.current == Epoch(0) || worker.last_world != epochs.current ||
      event.last_epoch != epochs.current)
    return;
  epochs.left.any = true;
  epochs.left.worked = epochs.left.worked || event.worked;
  epochs.left.lost_steps = std::max(epochs.left.lost_steps, event.lost_steps);
  epochs.left.lost_time = std::max(epochs.left.lost_time, event.lost_time);
  epochs.left.commit = std::max(epochs.left.commit, event.commit);
  NoteUnreached(worker, event);
  const bool explains_more = epochs.left.caused_by_peer && !event.caused_by_peer;
  if (event.left_for.empty() || (!epochs.left.cause.empty() && !explains_more)) return;
  epochs.left.cause = phrases::OneLine(event.left_for);
  epochs.left.caused_by_peer = event.caused_by_peer;
  epochs.left.rank = worker.place.rank;
  epochs.left.host = HostOf(worker).slots.host;
}

void Membership::State::BreakEpoch(const std::string& reason) {
  if (!epochs.whole()) return;
  epochs.End(reason, &effects);
  epochs.broken_at = last_time;
  Note(Notice::Kind::kEpochBroken, reason);
}

void Membership::State::On(const WatchRequested& event, absl::Time now) {
  const Worker* worker = workers.Find(event.worker.id);
  if (worker != nullptr && verdict.has_value()) {
    effects.push_back(ReplyWatch{event.call, EpochChange::kJobOver, verdict->summary});
    return;
  }
  if (absl::Status status = CheckSpeaker(*this, event.worker, worker); !status.ok()) {
    return Answer(event.call, std::move(status));
  }
  if (event.epoch > Epoch(0) && event.epoch < epochs.current) {
    effects.push_back(ReplyWatch{event.call, EpochChange::kBroken,
                                 absl::StrCat("world ", epochs.current.value(), " has begun")});
    return;
  }
  if (absl::Status status = CheckMember(*this, event.worker, *worker, event.epoch); !status.ok()) {
    return Answer(event.call, std::move(status));
  }
  if (epochs.broken.has_value()) {
    effects.push_back(ReplyWatch{event.call, EpochChange::kBroken, *epochs.broken});
  } else if (epochs.changing.has_value() && !event.knows_of_change) {
    effects.push_back(ReplyWatch{event.call, EpochChange::kChanging, *epochs.changing});
  } else if (const auto surplus = epochs.watches.Add(event)) {
    Answer(surplus->call, absl::CancelledError(absl::StrCat(
                              Name(*worker), " watches its world in too many other calls")));
  }
}

void Membership::State::On(const ExchangeRequested& event, absl::Time now) {
  const Worker* worker = workers.Find(event.worker.id);
  if (absl::Status status = CheckSpeaker(*this, event.worker, worker); !status.ok()) {
    return Answer(event.call, std::move(status));
  }
  if (absl::Status status = CheckMember(*this, event.worker, *worker, event.epoch); !status.ok()) {
    return Answer(event.call, std::move(status));
  }
  epochs.rounds.Give(worker->place.rank, event.call, event.key, event.value, &effects);
}

void Membership::State::On(const Reported& event, absl::Time now) {
  Worker* worker = workers.Find(event.worker.id);
  if (worker != nullptr && verdict.has_value()) {
    // The verdict is known, so the report no longer matters.
    return Answer(event.call, absl::OkStatus());
  }
  if (absl::Status status = Admit(event.worker, worker); !status.ok()) {
    return Answer(event.call, std::move(status));
  }
  if (!event.finished) {
    worker->exception = phrases::OneLine(event.failure);
    worker->caused_by_peer = event.caused_by_peer;
    // Known before it exits: the others do not wait for that.
    Host& host = hosts[worker->host];
    host.commit = std::max(host.commit, event.commit);
    root_cause.Said(worker->place.rank, HostOf(*worker).slots.host, event.failure,
                    event.caused_by_peer);
    if (worker->life.member() && event.epoch == epochs.current) {
      BreakEpoch(absl::StrCat(Name(*worker), " failed: ", phrases::OneLine(event.failure)));
    }
    if (elastic() && event.ends_job) {
      EndAsReported(event.failure, now);
    } else if (elastic()) {
      FailSoon(worker, now);
    }
    return Answer(event.call, absl::OkStatus());
  }
  // Epoch 0 means that the process was never in a world; that does not concern the current one.
  if (event.epoch > Epoch(0)) {
    if (absl::Status status = CheckMember(*this, event.worker, *worker, event.epoch);
        !status.ok()) {
      return Answer(event.call, std::move(status));
    }
  }
  root_cause.Retract(worker->place.rank);
  // An elastic job may have stopped to count it as a member already; the report counts
  // nevertheless.
  const bool is_member = worker->life.member() || (elastic() && epochs.current > Epoch(0));
  if (is_member && event.epoch == epochs.current) {
    worker->life.Make(Move::kFinish);
    if (!elastic()) root_cause.Left(worker->place.rank, HostOf(*worker).slots.host);
    epochs.rounds.Close(absl::FailedPreconditionError(absl::StrCat(
                            Name(*worker), " has left world ", epochs.current.value())),
                        &effects);
  }
  Answer(event.call, absl::OkStatus());
}

// OK confirms to rank 0 that its world is the newest one: its lease, and so its permission to
// commit, depends on it. It must therefore never be sent for a broken or superseded world while
// another one can form.
void Membership::State::On(const ProgressReported& event, absl::Time now) {
  const Worker* worker = workers.Find(event.worker.id);
  const bool leads = worker != nullptr && worker->place.rank == 0;
  // Of rank 0 only: another rank may still have those of a world that it led.
  const auto note_checkpoints = [&] {
    if (leads && event.checkpoints.has_value()) NoteCheckpoints(*event.checkpoints, now);
  };
  const bool succeeded = worker != nullptr && verdict.has_value() && verdict->success;
  if (succeeded && CheckMember(*this, event.worker, *worker, event.epoch).ok()) {
    note_checkpoints();
    return Answer(event.call, absl::OkStatus());
  }
  if (worker != nullptr && WasLast(*this, event, *worker)) {
    note_checkpoints();
    return Answer(event.call, absl::OkStatus());
  }
  absl::Status status = CheckSpeaker(*this, event.worker, worker);
  if (status.ok() && worker != nullptr)
    status = CheckMember(*this, event.worker, *worker, event.epoch);
  if (status.ok() && epochs.broken.has_value()) {
    note_checkpoints();  // whatever has become of the world, they are there
    status = absl::FailedPreconditionError(
        absl::StrCat("world ", epochs.current.value(), " is broken: ", *epochs.broken));
  }
  Answer(event.call, status);
  if (!status.ok()) return;
  if (leads && event.began_with.has_value()) NoteBegin(*event.began_with);
  note_checkpoints();
  if (event.commit <= epochs.reported_commit) return;
  epochs.reported_commit = event.commit;
  epochs.committed_at = now - event.commit_age;
  epochs.times.Made(event.commit, epochs.committed_at, /*lasts=*/false);
}

// Rank 0 of the newest world has said with which commit training began. Only now the loss of the
// world before it is known if nobody had a commit: there may have been a checkpoint.
void Membership::State::NoteBegin(uint64_t commit) {
  if (epochs.has_begun || !elastic()) return;
  const Loss loss = epochs.CountBegin(commit);
  Note(Notice::Kind::kWorldBegan,
       absl::StrCat("world ", epochs.current.value(),
                    commit > 0 ? absl::StrCat(" goes on from commit ", CommitNumber(commit))
                               : " begins at the start"));
  auto& began = std::get<Notice>(effects.back());
  began.commit = CommitNumber(commit);
  began.lost_steps = loss.steps;
  began.lost_time = loss.time;
}

void Membership::State::NoteCheckpoints(const Checkpoints& told, absl::Time now) {
  if (!elastic()) return;
  Checkpoint& known = epochs.checkpoint;
  const bool is_new = told.commit > 0 && told.commit != known.commit;
  if (is_new) known.made_at = absl::InfinitePast();
  if (told.age != absl::InfiniteDuration()) known.made_at = now - told.age;
  if (is_new && known.made_at != absl::InfinitePast())
    epochs.times.Made(told.commit, known.made_at, /*lasts=*/true);
  const bool works_again = is_new && (known.commit == 0 || !known.failure.empty());
  const bool fails = !told.failure.empty() && told.failure != known.failure;
  known.commit = told.commit;
  known.place = phrases::OneLine(told.place);
  known.failure = phrases::OneLine(told.failure);
  if (fails) return Note(Notice::Kind::kCheckpointFailed, known.failure);
  if (works_again)
    Note(Notice::Kind::kCheckpointWritten,
         absl::StrCat("there is a checkpoint of commit ", CommitNumber(known.commit), ": ",
                      known.place));
}

void Membership::State::On(const CallCancelled& event, absl::Time now) {
  const absl::Status cancelled = absl::CancelledError("the caller gave up");
  if (epochs.watches.Take(event.call).has_value()) return Answer(event.call, cancelled);
  if (epochs.rounds.Withdraw(event.call, cancelled, &effects)) return;
  for (Worker& worker : workers) {
    if (!worker.join.has_value() || worker.join->call != event.call) continue;
    worker.join.reset();
    return Answer(event.call, cancelled);
  }
}

}  // namespace hvd::rendezvous::membership
