// The lifecycle of a worker as a state machine: its membership in the newest world, and its exit
// from the job.
#ifndef RENDEZVOUS_LIFECYCLE_WORKER_LIFECYCLE_H_
#define RENDEZVOUS_LIFECYCLE_WORKER_LIFECYCLE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hvd::rendezvous::lifecycle {

// Two orthogonal regions, Part and Life, which change independently except as stated below.
//
// Part: its membership in the newest world that it was in:
//
//              +------Leave------+
//              v                 |
//           outside --Enter--> member
//            |   ^               | ^
//       Finish   Disown     Finish Enter
//            v   |               v |
//           finished <-----------+-+
//
// Life: the state of its process, and whether it was asked to leave or stopped:
//
//   running --SayFailing--> failing --GoOn--> running
//   running, failing --Die--> dying --Replace--> running
//   running, failing, dying --Release--> released --Stop----> released and stopped
//   running, failing, dying --Stop-----> stopped ---Release-> released and stopped
//   each of the above --EndWell--> left --Blame--> failed
//   each of the above --EndBadly--> failed
//
// Between the regions: only a running worker, or a dying one in a static job, can enter a world. A
// member must leave the world before it becomes failing, released or stopped, and leaves it when
// its process ends.
//
// A move that the table does not allow is a bug in Membership. It changes nothing, so that a worker
// that is gone stays gone, and the first one is recorded: Membership::Check reports it, which fails
// the simulation. In production the daemon continues, because one inconsistent worker does not
// justify the end of the job. Pure.
class WorkerLifecycle {
 public:
  enum class Part {
    kOutside,   // not in the newest world, or no longer
    kMember,    // in it, and not finished
    kFinished,  // reported that it finished; or exited with success without ever being in a world
  };
  enum class Life {
    kRunning,
    kFailing,             // reported a failure; its exit is still to come
    kDying,               // WorkerDying was received
    kReleased,            // asked to leave
    kStopped,             // the agent was asked to stop it
    kReleasedAndStopped,  // both
    kLeft,                // gone, not in failure
    kFailed,              // gone, in failure
  };
  enum class Move {
    // Moves of Part.
    kEnter,   // a world is formed with it
    kLeave,   // the world ended or continues without it; no effect on non-members
    kFinish,  // it reported that it finished
    kDisown,  // it left too early: the other members continued
    // Moves of Life.
    kSayFailing,  // it reported a failure, which was passed on to the others
    kGoOn,        // it asks for a world: its earlier report is void
    kReplace,     // a new process of the same worker has taken over
    kDie,
    kRelease,
    kStop,
    kEndWell,
    kEndBadly,
    kBlame,  // its failure counts, although it exited cleanly
  };

  // Makes the move. Returns false, and changes nothing, if it is not allowed.
  bool Make(Move move);

  Part part() const { return part_; }
  Life life() const { return life_; }

  bool member() const { return part_ == Part::kMember; }
  bool finished() const { return part_ == Part::kFinished; }
  bool running() const { return life_ == Life::kRunning; }
  bool dying() const { return life_ == Life::kDying; }
  bool released() const { return life_ == Life::kReleased || life_ == Life::kReleasedAndStopped; }
  bool stopped() const { return life_ == Life::kStopped || life_ == Life::kReleasedAndStopped; }
  bool leaving() const { return released() || stopped(); }  // at the job's request
  bool gone() const { return life_ == Life::kLeft || life_ == Life::kFailed; }

  // Whether its failure report was passed on to the other workers. Then its exit counts as a
  // failure, even if it was released or stopped since.
  bool failure_told() const { return failure_told_; }
  // Whether its failure was counted before its exit.
  bool failure_counted() const { return failure_counted_; }

  // Returns a violation ("move GoOn of a worker that is outside and left"), or an empty string.
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
