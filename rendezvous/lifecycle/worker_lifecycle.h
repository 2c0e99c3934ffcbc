// The lifecycle of a worker as a state machine: its part in the newest world, and its way out of
// the job.
#ifndef RENDEZVOUS_LIFECYCLE_WORKER_LIFECYCLE_H_
#define RENDEZVOUS_LIFECYCLE_WORKER_LIFECYCLE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::rendezvous::lifecycle {

// Two regions that change independently, except as stated below.
//
// Part, in the newest world that the worker was in:
//
//              +------Leave------+
//              v                 |
//           outside --Enter--> member
//            |   ^               | ^
//       Finish   Disown     Finish Enter
//            v   |               v |
//           finished <-----------+-+
//
// Life, of its process, and what the job asks of it:
//
//   running --SayFailing--> failing --GoOn--> running
//   running, failing --Die--> dying --Replace--> running
//   running, failing, dying --Release--> released --Stop----> released and stopped
//   running, failing, dying --Stop-----> stopped ---Release-> released and stopped
//   each of the above --EndWell--> left --Blame--> failed
//   each of the above --EndBadly--> failed
//
// Between the regions: only a running or (static jobs) dying worker enters a world. A member must
// leave the world before it is failing, released or stopped, and leaves it when it ends.
//
// Pure. A move that the table lacks is a bug of the machine. It changes nothing, so that a worker
// that is gone stays gone. It is remembered: the simulation fails for it (Membership::Check). A
// daemon goes on, since a job that trains is worth more than this one worker's record.
class WorkerLifecycle {
 public:
  enum class Part {
    kOutside,   // not in the newest world, or not any more
    kMember,    // in it, and has not reported that it finished
    kFinished,  // was in it and reported that it finished; or exited well and never needed a world
  };
  enum class Life {
    kRunning,
    kFailing,             // reported that it fails; its end is to come
    kDying,               // its process is ending: WorkerDying was seen
    kReleased,            // asked to leave
    kStopped,             // the agent was asked to stop it
    kReleasedAndStopped,  // both
    kLeft,                // gone, not in failure
    kFailed,              // gone, in failure
  };
  enum class Move {
    // Of the part.
    kEnter,   // a world is formed with it
    kLeave,   // the world ended, or goes on without it; no effect on others than members
    kFinish,  // it reported that it finished
    kDisown,  // the others went on, so it had left too early
    // Of the life.
    kSayFailing,  // by its own report, which was published
    kGoOn,        // it asks for a world: what it reported before does not count any more
    kReplace,     // another process of the same worker has taken over
    kDie,
    kRelease,
    kStop,
    kEndWell,
    kEndBadly,
    kBlame,  // its failure is counted, whatever the evidence
  };

  // Whether the move was allowed. If not, nothing has changed.
  bool Make(Move move);

  Part part() const { return part_; }
  Life life() const { return life_; }

  bool member() const { return part_ == Part::kMember; }
  bool finished() const { return part_ == Part::kFinished; }
  bool running() const { return life_ == Life::kRunning; }
  bool dying() const { return life_ == Life::kDying; }
  bool released() const { return life_ == Life::kReleased || life_ == Life::kReleasedAndStopped; }
  bool stopped() const { return life_ == Life::kStopped || life_ == Life::kReleasedAndStopped; }
  bool leaving() const { return released() || stopped(); }  // by the job's will
  bool gone() const { return life_ == Life::kLeft || life_ == Life::kFailed; }

  // It has reported that it fails, and that was published. So its end counts as a failure, whatever
  // the job has asked of it meanwhile.
  bool failure_told() const { return failure_told_; }
  // Its failure was counted while its end was still to come.
  bool failure_counted() const { return failure_counted_; }

  // Empty: the invariants hold; else a violation: "move GoOn of a worker that is outside and left".
  std::string Check() const;

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("part", part_, "life", life_, "failure_told", failure_told_, "failure_counted",
           failure_counted_);
  }

 private:
  struct Refused {
    Move move;
    Part part;
    Life life;
  };

  bool Allowed(Move move) const;
  void NoteFailure(Move move);

  Part part_ = Part::kOutside;
  Life life_ = Life::kRunning;
  bool failure_told_ = false;
  bool failure_counted_ = false;
  std::optional<Refused> refused_;  // the first; not kept in snapshots
};

absl::string_view NameOf(WorkerLifecycle::Part part);
absl::string_view NameOf(WorkerLifecycle::Life life);
absl::string_view NameOf(WorkerLifecycle::Move move);

}  // namespace hvd::rendezvous::lifecycle

#endif  // RENDEZVOUS_LIFECYCLE_WORKER_LIFECYCLE_H_
