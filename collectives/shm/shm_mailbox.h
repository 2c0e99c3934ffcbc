// The shared-memory mailbox, over ShmLinks.
#ifndef COLLECTIVES_SHM_SHM_MAILBOX_H_
#define COLLECTIVES_SHM_SHM_MAILBOX_H_

#include <atomic>

#include "collectives/mailbox.h"
#include "collectives/shm/shm_links.h"

namespace hvd::collectives::shm {

// `links` must outlive it. Where the ranks can't watch each other's processes, state() is kDead
// only for rank 0, or on rank 0 (see ShmLinks).
class ShmMailbox : public Mailbox {
 public:
  explicit ShmMailbox(ShmLinks& links) : links_(links) {}

  size_t Write(int peer, absl::string_view bytes) override;
  size_t Read(int peer, char* buffer, size_t size) override;
  bool HasData(int peer) const override;
  bool HasRoom(int peer) const override;
  PeerState state(int peer) const override;
  void Close() override;
  bool Look(Ready ready) override;
  bool PrepareSleep(Ready ready) override;
  void AwaitWake(absl::Duration timeout) override;
  void StayAwake() override { links_.StayAwake(); }
  void TakeOver() override { links_.TakeOver(); }
  void Wake() override;
  bool TakeWake() override { return woken_.exchange(false); }

 private:
  segment::BytePipe& Out(int peer) const {
    return links_.segment().pipe(segment::PipeKind::kMail, links_.rank(), peer);
  }
  segment::BytePipe& In(int peer) const {
    return links_.segment().pipe(segment::PipeKind::kMail, peer, links_.rank());
  }

  ShmLinks& links_;
  std::atomic<bool> woken_{false};
  std::atomic<bool> sleeping_{false};  // sleeps, or is about to: Wake() must ring the bell
};

}  // namespace hvd::collectives::shm

#endif  // COLLECTIVES_SHM_SHM_MAILBOX_H_
