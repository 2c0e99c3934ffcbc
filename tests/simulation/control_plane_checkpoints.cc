// Checkpoints in a folder that all hosts share, and jobs that begin with them.
#include <utility>

#include "tests/simulation/control_plane.h"
#include "tests/simulation/trace.h"

namespace hvd {
namespace {

// The seed of a job that follows another one.
constexpr uint64_t kNextJob = uint64_t{1} << 40;

}  // namespace

// Rank 0 writes one commit at a time, in the background.
void ControlPlane::Write(int index, const Commit& commit) {
  Process& process = processes_[index];
  if (!has_checkpoints_ || process.writing_turn == process.turn) return;
  process.writing = commit;
  process.writing_turn = process.turn;
  Later(index, dice_.Between(200 * kMilli, 2 * kSecond), [this, index] { Confirm(index); });
}

// At the end of a process that the job has released: it was drained, so that nobody may continue
// from its commit in memory.
void ControlPlane::WriteLast(int index) {
  Process& process = processes_[index];
  const bool writes = has_checkpoints_ && process.rank == 0 && process.commit.id > process.written;
  const Micros time = dice_.Between(kMilli, 500 * kMilli);
  if (!writes) return Later(index, time, [this, index] { Die(index, 0, 0); });
  process.writing = process.commit;
  process.writing_turn = process.turn;
  Later(index, time, [this, index] { Confirm(index); });
}

// A file gets its name only after the daemon has confirmed that the world is the newest one.
void ControlPlane::Confirm(int index) {
  Ask(index, CallKind::kConfirm, [this, index](rendezvous::membership::CallId call) {
    return Progress(call, processes_[index]);
  });
}

void ControlPlane::HearConfirmed(int index, bool is_newest) {
  Process& process = processes_[index];
  const bool has_told = process.written == process.writing.id;
  process.has_failed = !is_newest || (writes_fail_ && !has_told && dice_.Chance(40));
  if (!process.has_failed && !has_told) Rename(process);
  if (!process.has_failed) process.written = process.writing.id;
  if (process.phase != Phase::kEnding) {
    process.writing_turn = -1;
    return;
  }
  // The daemon hears of the last checkpoint before the process ends.
  if (!process.has_failed && !has_told) return Confirm(index);
  Die(index, 0, 0);
}

// A checkpoint of a newer world is not replaced by one of an older world.
void ControlPlane::Rename(const Process& process) {
  const Commit& commit = process.writing;
  if (commit.id <= checkpoint_.id) return;
  ++tally_.checkpoints;
  checkpoint_ = commit;
  Log("there is a checkpoint of commit ", CommitText(commit.id));
  const auto group = groups_.find(CommitWorld(commit.id));
  const bool has_returned =
      group != groups_.end() &&
      returned_[commit.id] == static_cast<int>(group->second.processes.size());
  if (has_returned) sure_checkpoint_ = commit;
}

void ControlPlane::CountReturned(const Process& process) { ++returned_[process.commit.id]; }

// As rank 0 of a world in which all get its state, unless it has a newer commit.
void ControlPlane::LoadCheckpoint(Process* process) {
  if (checkpoint_.id <= process->commit.id) return;
  Log("worker ", process->id.value(), " loads the checkpoint of commit ",
      CommitText(checkpoint_.id));
  process->loaded = checkpoint_;
  process->written = checkpoint_.id;
  ++tally_.checkpoints_used;
}

rendezvous::membership::ProgressReported ControlPlane::Progress(rendezvous::membership::CallId call,
                                                                const Process& process) const {
  rendezvous::membership::ProgressReported report{call,
                                                  {process.id, process.incarnation},
                                                  Epoch(process.epoch),
                                                  process.commit.id,
                                                  absl::Seconds(1),
                                                  process.began_with};
  if (!has_checkpoints_) return report;
  report.checkpoints = rendezvous::membership::Checkpoints{
      process.written, absl::InfiniteDuration(), "/c", process.has_failed ? "disk full" : ""};
  return report;
}

std::optional<ControlPlane::Commit> ControlPlane::left_behind() const {
  if (!is_lost_) return std::nullopt;
  return Commit{CommitId(0, CommitNumber(checkpoint_.id)), checkpoint_.content};
}

std::string RunWithSuccessors(uint64_t seed, bool traced, ControlPlane::Tally* tally,
                              std::string* trace) {
  ControlPlane::Commit found;
  while (true) {
    ControlPlane plane(seed, traced, found);
    const std::string wrong = plane.Run();
    tally->Add(plane.tally());
    *trace += plane.trace();
    const std::optional<ControlPlane::Commit> left = plane.left_behind();
    if (!wrong.empty() || !left.has_value()) return wrong;
    found = *left;
    seed += kNextJob;
  }
}

}  // namespace hvd
