// The receiver of commit copies: keeps the newest commit of another host in this host's memory.
#ifndef AGENT_COPIES_COMMIT_KEEPER_H_
#define AGENT_COPIES_COMMIT_KEEPER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/copies/channel.h"
#include "base/cancellation.h"
#include "base/fd.h"
#include "worker_runtime/commit_store/commit_arena.h"

namespace hvd::agent::copies {

// Owns a thread that receives the copies. Not thread-safe: all methods are for one thread.
class CommitKeeper {
 public:
  // Called on the keeper's thread: with the number of each commit that has been copied completely,
  // and with an error if the source has not been reached for `patience`, once until it is reached.
  using OnKept = std::function<void(const absl::StatusOr<uint64_t>& kept)>;
  static constexpr absl::Duration kPatience = absl::Seconds(15);

  CommitKeeper(std::string job, Trust trust, absl::Duration patience = kPatience);
  ~CommitKeeper();

  // The memfd with the copies, in the form of a commit arena. Borrowed; other users may only read
  // it. -1: no memory was available.
  int memory() const { return memory_.get(); }

  // Starts to copy commits from the source at "address:port", and stops following an earlier
  // source. The present copy stays until a newer one has been received.
  void Follow(const std::string& address, OnKept on_kept);
  // Stops following the source and drops the copy.
  void Drop();

 private:
  void Stop();
  void TakeAll(const std::string& address);
  absl::Status TakeFrom(const std::string& address);
  absl::Status TakeOne(Channel& channel);
  absl::Status Fill(Channel& channel, const CopyHead& head);

  const std::string job_;
  const Trust trust_;
  const absl::Duration patience_;
  const Fd memory_;
  OnKept on_kept_;
  // While the thread runs, only the thread uses these.
  std::unique_ptr<worker_runtime::commit_store::CommitArena> arena_;
  uint64_t newest_ = 0;
  bool was_reached_ = false;  // the source, in the present attempt
  std::unique_ptr<Cancellation> ending_;
  std::thread thread_;
};

}  // namespace hvd::agent::copies

#endif  // AGENT_COPIES_COMMIT_KEEPER_H_
