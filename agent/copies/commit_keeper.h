// The keeper of copies of commits: takes the newest commit of another host each time there is one.
#ifndef AGENT_COPIES_COMMIT_KEEPER_H_
#define AGENT_COPIES_COMMIT_KEEPER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "agent/copies/channel.h"
#include "base/cancellation.h"
#include "base/fd.h"
#include "worker_runtime/commit_store/commit_arena.h"

namespace hvd::agent::copies {

// Belongs to one thread, beside the one that it starts.
class CommitKeeper {
 public:
  // Called by the keeper's thread with the number of a commit that it has now.
  using OnKept = std::function<void(uint64_t number)>;

  CommitKeeper(std::string job, Trust trust);
  ~CommitKeeper();

  // The memory with the copies, in the form of a commit arena: a memfd, borrowed; -1: there is
  // none. Others may only read it.
  int memory() const { return memory_.get(); }

  // Takes copies from the source at this "address:port" from now on, for as long as it lives, and
  // in place of any other. What it has stays until there is something newer.
  void Follow(const std::string& address, OnKept on_kept);
  // Takes none any more, and drops what it has.
  void Drop();

 private:
  void Stop();
  void TakeAll(const std::string& address);
  absl::Status TakeFrom(const std::string& address);
  absl::Status TakeOne(Channel& channel);
  absl::Status Fill(Channel& channel, const CopyHead& head);

  const std::string job_;
  const Trust trust_;
  const Fd memory_;
  OnKept on_kept_;
  std::unique_ptr<worker_runtime::commit_store::CommitArena> arena_;  // the thread's, if one runs
  uint64_t newest_ = 0;                                               // likewise
  std::unique_ptr<Cancellation> ending_;
  std::thread thread_;
};

}  // namespace hvd::agent::copies

#endif  // AGENT_COPIES_COMMIT_KEEPER_H_
