// An elastic job in which all goes well: its agents and workers answer the membership machine at
// once, in no time.
#ifndef TESTS_COMPLEXITY_PLAYED_JOB_H_
#define TESTS_COMPLEXITY_PLAYED_JOB_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "rendezvous/membership/membership.h"
#include "tests/complexity/growth.h"

namespace hvd {

// Not thread-safe.
class PlayedJob {
 public:
  static constexpr int kSlots = 4;  // of each host

  // A job of `hosts` hosts in its first world.
  explicit PlayedJob(int64_t hosts);

  // Each plays one change to its end, and returns what it has cost the daemon: operations, messages
  // to agents and workers (not notices), and bytes of the journal.
  Cost FailWorker();
  Cost DrainHost();
  Cost AddHost();
  Cost Exchange();
  Cost ReportProgress();
  Cost WatchAgain();
  Cost Finish();
  Cost StopAtCommit();
  // The cost of the first world, of a snapshot, and of a status.
  const Cost& formed() const { return formed_; }
  Cost Save();
  Cost Describe();

 private:
  struct Member {
    rendezvous::membership::WorkerKey key;
    std::string host;
    uint64_t epoch = 0;  // its newest world
  };

  void Apply(const rendezvous::membership::Event& event);
  void ApplyAnswers();
  void Answer(const rendezvous::membership::Effect& effect);
  void Join(uint64_t worker);
  void Exit(uint64_t worker, int signal);
  void AttachHost();
  void WaitForWorld(size_t members);
  void WaitForEnd();
  Cost Since(const Cost& before) const;
  rendezvous::membership::CallId NewCall(uint64_t worker);
  Member& first() { return members_.begin()->second; }

  absl::Time now_ = absl::UnixEpoch();
  rendezvous::membership::Membership machine_;
  int64_t hosts_ = 0;
  uint64_t commit_ = 0;                 // the newest, which all members have
  std::map<uint64_t, Member> members_;  // by worker id
  std::map<uint64_t, uint64_t> calls_;  // the worker of each call
  uint64_t last_call_ = 0;
  std::deque<rendezvous::membership::Event> answers_;  // yet to be applied
  Cost spent_;                                         // without operations
  Cost formed_;
};

}  // namespace hvd

#endif  // TESTS_COMPLEXITY_PLAYED_JOB_H_
