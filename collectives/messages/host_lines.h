// The streams between the ranks of one host, in shared memory.
#ifndef COLLECTIVES_MESSAGES_HOST_LINES_H_
#define COLLECTIVES_MESSAGES_HOST_LINES_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/messages/endpoint.h"
#include "collectives/messages/flow.h"
#include "collectives/messages/host_memory.h"
#include "collectives/shm/shm_links.h"
#include "collectives/shm/shm_mailbox.h"

namespace hvd::collectives::messages {

// Belongs to the thread that holds the messenger's lock, except where it says otherwise.
class HostLines {
 public:
  // ranks[i] is the group's number of the rank that `links` calls i. Connects `endpoint` with them.
  HostLines(std::unique_ptr<shm::ShmLinks> links, std::vector<int> ranks, Endpoint& endpoint);
  // Publishes that this rank has left cleanly, unless broken.
  ~HostLines();

  // Reads and writes what is possible; returns whether anything has moved.
  // Errors:
  //   - DataLoss: those of Endpoint::Read.
  absl::StatusOr<bool> Move(Endpoint& endpoint);
  // Whether there is something to read, or room to write what waits. HasNews needs no lock, after a
  // NoteWriters of the same thread.
  bool CanMove(const Endpoint& endpoint) const;
  void NoteWriters(const Endpoint& endpoint);
  bool HasNews() const;

  // Ends the peers that have left. To be called now and then, and before a sleep.
  // Errors:
  //   - Unavailable: a rank is dead or has given up; says which.
  absl::Status Review(Endpoint& endpoint);
  // Whether `peer` is there, as far as it is known without a review. What was copied from its
  // memory before is valid if so.
  bool IsThere(int peer) const;
  bool Contains(int peer) const { return index_[peer] >= 0; }

  // See Mailbox. Look may be called by any thread; one thread at a time sleeps, in a poll of
  // wake_fd().
  bool Look(absl::FunctionRef<bool()> ready) { return links_->Look(ready); }
  bool PrepareSleep(const Endpoint& endpoint);
  void StayAwake() { links_->StayAwake(); }
  void TakeOver() { links_->TakeOver(); }
  int wake_fd() const { return links_->wake_fd(); }

  // Announce to the others that this rank has left, or has given up. From then on they use nothing
  // of its memory.
  void SayGoodbye() { mailbox_.Close(); }
  void GiveUp(const absl::Status& why) { links_->Break(why, links_->rank()); }

 private:
  class Flow : public OutFlow, public InFlow {
   public:
    Flow(shm::ShmMailbox& mailbox, int index) : mailbox_(mailbox), index_(index) {}
    size_t Write(absl::string_view first, absl::string_view second) override;
    size_t piece_bytes() const override { return size_t{64} << 10; }
    size_t Read(char* to, size_t size) override { return mailbox_.Read(index_, to, size); }

   private:
    shm::ShmMailbox& mailbox_;
    const int index_;
  };

  int own() const { return links_->rank(); }
  MemoryCard& card(int index) const;

  const std::unique_ptr<shm::ShmLinks> links_;
  shm::ShmMailbox mailbox_;
  const std::vector<int> ranks_;
  std::vector<int> index_;  // by rank; -1: elsewhere
  uint64_t cookie_;         // other processes read it
  std::deque<Flow> flows_;
  std::deque<HostMemory> memories_;
  std::vector<int> writers_;  // to whom packets wait, by index
  size_t next_ = 0;           // whose turn it is to be read first
};

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_HOST_LINES_H_
