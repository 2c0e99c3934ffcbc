// The times of a job's commits, which tell how much work is lost when training goes back to one.
#ifndef RENDEZVOUS_POLICY_COMMIT_TIMES_H_
#define RENDEZVOUS_POLICY_COMMIT_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"

namespace hvd::rendezvous::policy {

// Times are those of work: a pause without a world, and work that was lost before, are left out. So
// the difference to the time at which a world broke is the work since a commit. Keeps the start,
// the newest commits, and those that a checkpoint has. Not thread-safe.
class CommitTimes {
 public:
  static constexpr size_t kMost = 64;

  // `lasts`: a checkpoint has it, so that training may go back to it long after newer commits.
  void Made(uint64_t commit, absl::Time time, bool lasts);
  // The time of a commit, or of the newest one before it that is known; 0: the start. `otherwise`:
  // none is known.
  absl::Time TimeOf(uint64_t commit, absl::Time otherwise) const;
  // A world that formed at `formed` goes on from `commit`; 0: from the start. Later commits that
  // were made before are given up.
  void GoOn(uint64_t commit, absl::Time formed);

  // See rendezvous/snapshot/fields.h.
  template <typename Fields>
  void Keep(Fields& fields) {
    fields("commits", commits_);
  }

 private:
  struct Entry {
    absl::Time time;
    bool lasts = false;

    template <typename Fields>
    void Keep(Fields& fields) {
      auto& [time, lasts] = *this;
      fields("time_ns", time, "lasts", lasts);
    }
  };

  void DropOne();

  std::map<uint64_t, Entry> commits_;
};

}  // namespace hvd::rendezvous::policy

#endif  // RENDEZVOUS_POLICY_COMMIT_TIMES_H_
