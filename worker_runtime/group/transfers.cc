#include "worker_runtime/group/transfers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::worker_runtime::group {

Transfers::Number Transfers::Add(const std::shared_ptr<ProcessGroup>& group,
                                 collectives::messages::TransferPtr transfer) {
  absl::MutexLock lock(&mutex_);
  entries_.emplace(next_, Entry{group, std::move(transfer)});
  return next_++;
}

absl::StatusOr<Transfers::Entry> Transfers::FindEntry(Number number) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(number);
  if (found != entries_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("there is no transfer ", number, " now"));
}

absl::StatusOr<collectives::messages::TransferPtr> Transfers::Find(Number number) const {
  ASSIGN_OR_RETURN(Entry entry, FindEntry(number));
  return std::move(entry.transfer);
}

std::optional<absl::Status> Transfers::AwaitEnd(Number number, absl::Duration most,
                                                int32_t* source) const {
  const absl::StatusOr<Entry> entry = FindEntry(number);
  if (!entry.ok()) return entry.status();
  const collectives::messages::Transfer& transfer = *entry->transfer;
  const std::shared_ptr<ProcessGroup> group = entry->group.lock();
  // Without its group the transfer is done, or is about to be, by another thread.
  if (!transfer.done() && (group == nullptr || !group->messenger()->WaitAWhile(transfer, most))) {
    return std::nullopt;
  }
  if (transfer.status().ok()) *source = transfer.source();
  return group == nullptr ? transfer.status() : group->CauseOf(transfer.status());
}

void Transfers::Remove(Number number) {
  absl::MutexLock lock(&mutex_);
  entries_.erase(number);
}

}  // namespace hvd::worker_runtime::group
