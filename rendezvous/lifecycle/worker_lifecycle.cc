#include "rendezvous/lifecycle/worker_lifecycle.h"

#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::lifecycle {
namespace {

using Part = WorkerLifecycle::Part;
using Life = WorkerLifecycle::Life;
using Move = WorkerLifecycle::Move;

struct PartRow {
  Part from;
  Move move;
  Part to;
};

constexpr PartRow kPartTable[] = {
    {Part::kOutside, Move::kEnter, Part::kMember},
    {Part::kOutside, Move::kLeave, Part::kOutside},
    // It was removed from the world, but its report counts.
    {Part::kOutside, Move::kFinish, Part::kFinished},
    {Part::kMember, Move::kLeave, Part::kOutside},
    {Part::kMember, Move::kFinish, Part::kFinished},
    {Part::kMember, Move::kEndWell, Part::kOutside},
    {Part::kMember, Move::kEndBadly, Part::kOutside},
    // A script may call init() again after shutdown(), which reports that it has finished.
    {Part::kFinished, Move::kEnter, Part::kMember},
    {Part::kFinished, Move::kLeave, Part::kFinished},
    {Part::kFinished, Move::kFinish, Part::kFinished},
    // Finished members only: any other that leaves while the rest continue has failed anyway.
    {Part::kFinished, Move::kDisown, Part::kOutside},
};

// The transitions of Life. A move that is not listed for a state is refused by Make.
struct LifeRow {
  Life from;
  Move move;
  Life to;
};

// Once a worker was released or stopped, its calls and reports do not change its state; only its
// exit does.
constexpr LifeRow kLifeTable[] = {
    {Life::kRunning, Move::kSayFailing, Life::kFailing},
    {Life::kRunning, Move::kGoOn, Life::kRunning},
    {Life::kRunning, Move::kReplace, Life::kRunning},
    {Life::kRunning, Move::kDie, Life::kDying},
    {Life::kRunning, Move::kRelease, Life::kReleased},
    {Life::kRunning, Move::kStop, Life::kStopped},
    {Life::kRunning, Move::kEndWell, Life::kLeft},
    {Life::kRunning, Move::kEndBadly, Life::kFailed},

    // No kSayFailing: the others know already, and Membership ignores a second report.
    {Life::kFailing, Move::kGoOn, Life::kRunning},
    {Life::kFailing, Move::kReplace, Life::kRunning},
    {Life::kFailing, Move::kDie, Life::kDying},
    {Life::kFailing, Move::kRelease, Life::kReleased},
    {Life::kFailing, Move::kStop, Life::kStopped},
    {Life::kFailing, Move::kEndWell, Life::kLeft},
    {Life::kFailing, Move::kEndBadly, Life::kFailed},

    // A report that was sent before the death may arrive after WorkerDying: they use different
    // connections.
    {Life::kDying, Move::kSayFailing, Life::kDying},
    {Life::kDying, Move::kGoOn, Life::kDying},
    {Life::kDying, Move::kReplace, Life::kRunning},
    {Life::kDying, Move::kRelease, Life::kReleased},
    {Life::kDying, Move::kStop, Life::kStopped},
    {Life::kDying, Move::kEndWell, Life::kLeft},
    {Life::kDying, Move::kEndBadly, Life::kFailed},

    {Life::kReleased, Move::kGoOn, Life::kReleased},
    {Life::kReleased, Move::kReplace, Life::kReleased},
    {Life::kReleased, Move::kDie, Life::kReleased},
    {Life::kReleased, Move::kRelease, Life::kReleased},
    {Life::kReleased, Move::kStop, Life::kReleasedAndStopped},
    {Life::kReleased, Move::kBlame, Life::kReleased},
    {Life::kReleased, Move::kEndWell, Life::kLeft},
    {Life::kReleased, Move::kEndBadly, Life::kFailed},

    {Life::kStopped, Move::kGoOn, Life::kStopped},
    {Life::kStopped, Move::kReplace, Life::kStopped},
    {Life::kStopped, Move::kDie, Life::kStopped},
    {Life::kStopped, Move::kRelease, Life::kReleasedAndStopped},
    {Life::kStopped, Move::kStop, Life::kStopped},
    {Life::kStopped, Move::kBlame, Life::kStopped},
    {Life::kStopped, Move::kEndWell, Life::kLeft},
    {Life::kStopped, Move::kEndBadly, Life::kFailed},

    {Life::kReleasedAndStopped, Move::kGoOn, Life::kReleasedAndStopped},
    {Life::kReleasedAndStopped, Move::kReplace, Life::kReleasedAndStopped},
    {Life::kReleasedAndStopped, Move::kDie, Life::kReleasedAndStopped},
    {Life::kReleasedAndStopped, Move::kRelease, Life::kReleasedAndStopped},
    {Life::kReleasedAndStopped, Move::kStop, Life::kReleasedAndStopped},
    {Life::kReleasedAndStopped, Move::kBlame, Life::kReleasedAndStopped},
    {Life::kReleasedAndStopped, Move::kEndWell, Life::kLeft},
    {Life::kReleasedAndStopped, Move::kEndBadly, Life::kFailed},

    // It had finished and exited cleanly, but the other members continued: it left too early.
    {Life::kLeft, Move::kBlame, Life::kFailed},
    {Life::kFailed, Move::kBlame, Life::kFailed},
};

template <typename Row, size_t kRows, typename State>
const Row* FindRow(const Row (&table)[kRows], State from, Move move) {
  for (const Row& row : table) {
    if (row.from == from && row.move == move) return &row;
  }
  return nullptr;
}

// The moves of Part come first in the enum.
bool IsOfPart(Move move) { return move <= Move::kDisown; }

}  // namespace

// The constraints between the two regions; the tables have those within each.
bool WorkerLifecycle::Allowed(Move move) const {
  switch (move) {
    case Move::kEnter:
      // A failing worker is about to exit, and one that was asked to leave must not come back.
      return running() || dying();
    case Move::kFinish:
      // The exit was judged by whether the worker had finished, which no later report may change.
      return !gone();
    case Move::kSayFailing:
    case Move::kRelease:
    case Move::kStop:
    case Move::kBlame:
      // Membership makes kLeave first, and breaks the world with it. Otherwise the others would
      // wait for this member.
      return !member();
    case Move::kLeave:
    case Move::kDisown:
    case Move::kGoOn:
    case Move::kReplace:
    case Move::kDie:
    case Move::kEndWell:
    case Move::kEndBadly:
      break;
  }
  return true;
}

bool WorkerLifecycle::Make(Move move) {
  // A move may concern both regions: the end of the process (kEndWell, kEndBadly) also takes a
  // member out of its world. It must be in the table of its own region only.
  const PartRow* part = FindRow(kPartTable, part_, move);
  const LifeRow* life = FindRow(kLifeTable, life_, move);
  const bool in_table = IsOfPart(move) ? part != nullptr : life != nullptr;
  if (!in_table || !Allowed(move)) {
    // Only the first one is of use: the later ones follow from it.
    if (!refused_.has_value()) refused_ = Refused{move, part_, life_};
    return false;
  }
  NoteFailure(move);
  if (part != nullptr) part_ = part->to;
  if (life != nullptr) life_ = life->to;
  return true;
}

void WorkerLifecycle::NoteFailure(Move move) {
  if (move == Move::kSayFailing) failure_told_ = true;
  // A worker that asks for a world again has survived what it reported, and a new process has not
  // failed yet.
  if (move == Move::kGoOn || move == Move::kReplace) failure_told_ = false;
  // Of use only until the exit: then the state itself says how the worker has ended.
  if (move == Move::kEndWell || move == Move::kEndBadly) failure_counted_ = false;
  if (move == Move::kBlame) failure_counted_ = !gone();
}

std::string WorkerLifecycle::Check() const {
  if (refused_.has_value()) {
    return absl::StrCat("move ", NameOf(refused_->move), " of a worker that is ",
                        NameOf(refused_->part), " and ", NameOf(refused_->life));
  }
  // A damaged snapshot may contain any number.
  const bool known = part_ >= Part::kOutside && part_ <= Part::kFinished &&
                     life_ >= Life::kRunning && life_ <= Life::kFailed;
  if (!known) return "a worker in no state";
  const std::string which =
      absl::StrCat("a worker that is ", NameOf(part_), " and ", NameOf(life_));
  // Dying members: in a static job they stay in their world until the exit, which decides the
  // verdict.
  if (member() && !running() && !dying()) return which;
  if (life_ == Life::kFailing && !failure_told_) return which + ", but that was not told";
  if (failure_counted_ && !leaving()) return which + ", with its failure counted";
  return "";
}

absl::string_view NameOf(WorkerLifecycle::Part part) {
  switch (part) {
    case Part::kOutside:
      return "outside";
    case Part::kMember:
      return "member";
    case Part::kFinished:
      break;
  }
  return "finished";
}

absl::string_view NameOf(WorkerLifecycle::Life life) {
  switch (life) {
    case Life::kRunning:
      return "running";
    case Life::kFailing:
      return "failing";
    case Life::kDying:
      return "dying";
    case Life::kReleased:
      return "released";
    case Life::kStopped:
      return "stopped";
    case Life::kReleasedAndStopped:
      return "released and stopped";
    case Life::kLeft:
      return "left";
    case Life::kFailed:
      break;
  }
  return "failed";
}

absl::string_view NameOf(WorkerLifecycle::Move move) {
  switch (move) {
    case Move::kEnter:
      return "Enter";
    case Move::kLeave:
      return "Leave";
    case Move::kFinish:
      return "Finish";
    case Move::kDisown:
      return "Disown";
    case Move::kSayFailing:
      return "SayFailing";
    case Move::kGoOn:
      return "GoOn";
    case Move::kReplace:
      return "Replace";
    case Move::kDie:
      return "Die";
    case Move::kRelease:
      return "Release";
    case Move::kStop:
      return "Stop";
    case Move::kEndWell:
      return "EndWell";
    case Move::kEndBadly:
      return "EndBadly";
    case Move::kBlame:
      break;
  }
  return "Blame";
}

}  // namespace hvd::rendezvous::lifecycle
