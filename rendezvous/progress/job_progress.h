// What a user wants to know of a job that changes while it runs: a line for each thing that
// happens, and a summary at the end; both from notices, whose texts are sentences. Pure.
#ifndef RENDEZVOUS_PROGRESS_JOB_PROGRESS_H_
#define RENDEZVOUS_PROGRESS_JOB_PROGRESS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "rendezvous/membership/events.h"

namespace hvd {

// Not thread-safe.
class JobProgress {
 public:
  // `min_workers`: with fewer than these a job can't go on.
  explicit JobProgress(int min_workers) : min_workers_(min_workers) {}

  struct Line {
    std::string text;        // without a newline; never empty
    bool important = false;  // for everybody, not only for those who want to know all
  };
  // Takes note of it.
  Line Tell(const Notice& notice, absl::Time now);

  // One line, without a newline: worlds, failures by cause, hosts that came and went, how often
  // work was lost, time without a world. Empty if there never was a world.
  std::string Summary() const;

 private:
  Line Failed(const Notice& notice);
  Line Formed(const Notice& notice, absl::Time now);

  const int min_workers_;
  int worlds_ = 0;
  Epoch epoch_;        // of the newest world
  int size_ = 0;       // of the newest world
  int remaining_ = 0;  // of its members
  std::map<std::string, int> causes_;
  int failures_ = 0;
  int hosts_joined_ = 0;  // after the first world
  int hosts_left_ = 0;
  int drains_overrun_ = 0;
  int hosts_lost_ = 0;
  bool rolled_back_ = false;  // since the newest world formed
  std::optional<absl::Time> broken_since_;
  int breaks_ = 0;
  int rollbacks_ = 0;
  absl::Duration without_world_;
  absl::Duration longest_break_;
};

}  // namespace hvd

#endif  // RENDEZVOUS_PROGRESS_JOB_PROGRESS_H_
