// The root-cause analysis of a job's failure, and exit statuses in words. When one worker dies, the
// others fail as well, because their collectives with it break; their exits often arrive before its
// own.
#ifndef RENDEZVOUS_MEMBERSHIP_ROOT_CAUSE_H_
#define RENDEZVOUS_MEMBERSHIP_ROOT_CAUSE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/membership/events.h"

namespace hvd::rendezvous::membership {

// A description for users: "exit code 3", "killed by signal 9 (SIGKILL), out of memory", "killed by
// signal 11 (SIGSEGV), core dumped", "killed by signal 9 (SIGKILL) by its agent: ...", "could not
// be started: ...".
std::string ExitMeaning(const WorkerExited& exited);

// Whether the process ended by itself with code 0.
bool ExitedWithZero(const WorkerExited& exited);

// The exit code of a job that failed because of this process: its exit code, 128 + its signal, or 1
// if it exited with 0. Never 0.
int FailureExitCode(const WorkerExited& exited);

// Collects the failures of a job and chooses the root cause, in this order of preference:
// - the earliest failure that is not a consequence (a worker reports caused_by_peer for a
//   consequence);
// - the worker that left cleanly and whose absence the earliest failure names;
// - the earliest failure.
// Failures are ordered by the first event of each worker: its report, or its end. Not thread-safe.
class RootCause {
 public:
  // Records the worker's report that it failed; the last report counts.
  void Said(int rank, const std::string& host, absl::string_view exception, bool caused_by_peer);

  // The worker's process is ending; its exit status is not known yet.
  void Dying(int rank, const std::string& host) { Of(rank, host); }

  // The worker's process has failed. Exit code 0 is a failure here: the worker had not finished.
  void Exited(int rank, const std::string& host, const WorkerExited& exited);

  // The worker has left cleanly.
  void Left(int rank, const std::string& host);

  // The worker is in a world again.
  void Returned(int rank);

  // The host is gone, and all its workers with it.
  void HostLost(const std::string& host, absl::string_view reason);

  // Removes the worker's report: it did not fail (it finished, or continues in the next world).
  void Retract(int rank);

  // Whether a process has failed or a host was lost, so that the job can no longer succeed.
  bool HasEnd() const;

  // Whether the choice is final, and the exit status of the chosen worker is known.
  bool IsCertain() const;

  // The verdict for the present choice. REQUIRES: HasEnd()
  Verdict Build() const;

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("failures", failures_, "left", left_);
  }

 private:
  enum class End {
    kToCome,
    kInFailure,  // failed, or its host was lost
    kWithZero,   // exit code 0, without having finished
  };

  struct Failure {
    int rank = -1;  // -1: the host itself
    std::string host;
    std::string exception;
    bool caused_by_peer = false;
    End end = End::kToCome;
    std::string meaning = "still running";
    int exit_code = 1;
    std::vector<std::string> stderr_tail;

    bool ended() const { return end != End::kToCome; }

    // Its end is kept as two fields.
    template <typename Fields>
    void Keep(Fields& fields) {
      auto& [rank, host, exception, caused_by_peer, end, meaning, exit_code, stderr_tail] = *this;
      bool ended = end != End::kToCome;
      bool ended_with_zero = end == End::kWithZero;
      fields("rank", rank, "host", host, "exception", exception, "caused_by_peer", caused_by_peer,
             "ended", ended, "ended_with_zero", ended_with_zero, "meaning", meaning, "exit_code",
             exit_code, "stderr_tail", stderr_tail);
      end = !ended ? End::kToCome : ended_with_zero ? End::kWithZero : End::kInFailure;
    }
  };

  Failure& Of(int rank, const std::string& host);
  const Failure& Chosen() const;
  const Failure* LeftFirst() const;
  void Blame(const Failure& left, Verdict& verdict) const;
  static std::string Summary(const Failure& failure);

  std::vector<Failure> failures_;  // in the order of each worker's first event; one per rank
  std::vector<Failure> left_;
};

}  // namespace hvd::rendezvous::membership

#endif  // RENDEZVOUS_MEMBERSHIP_ROOT_CAUSE_H_
