#include "collectives/hierarchical/hierarchical_communicator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/unreached_rank.h"

namespace hvd::collectives::hierarchical {
namespace {

// How long a rank that has lost a peer of its host waits for the mesh to report which peer, and
// why. When a process dies, the mesh detects it a little later than the host's communicator.
constexpr absl::Duration kNewsTimeout = absl::Milliseconds(250);

}  // namespace

HierarchicalCommunicator::HierarchicalCommunicator(const GroupInfo& group, const HostLayout& layout,
                                                   const HierarchyOptions& options,
                                                   std::unique_ptr<Communicator> local,
                                                   std::unique_ptr<MeshCommunicator> mesh)
    : epoch_(group.epoch),
      layout_(layout),
      options_(options),
      local_(std::move(local)),
      mesh_(std::move(mesh)),
      column_(layout_.index < layout_.columns() ? mesh_->Subset(layout_.Column(layout_.index))
                                                : nullptr) {
  mesh_->CountMoves(local_->moves_elsewhere());
  mesh_->OnBroken([this](const absl::Status& why) { OnMeshBroken(why); });
}

std::string HierarchicalCommunicator::ToString() const {
  return absl::StrCat("hierarchical, rank ", rank(), " of ", size(), " on ", layout_.hosts.size(),
                      " hosts, epoch ", epoch_.value());
}

absl::Status HierarchicalCommunicator::Run(absl::string_view operation,
                                           absl::FunctionRef<absl::Status()> body) {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(aborted_);
    RETURN_IF_ERROR(broken_);
  }
  failed_in_host_ = false;
  const absl::Status status = body();
  return status.ok() ? status : Fail(operation, status);
}

absl::Status HierarchicalCommunicator::InHost(const absl::Status& status) {
  failed_in_host_ = !status.ok();
  return status;
}

// Breaks both communicators, so that the ranks that wait in either of them fail, too. The reason is
// determined first, since the aborts would hide it.
absl::Status HierarchicalCommunicator::Fail(absl::string_view operation,
                                            const absl::Status& status) {
  const absl::Status reason = failed_in_host_ ? ExplainHostFailure(operation, status) : status;
  {
    absl::MutexLock lock(&mutex_);
    broken_ = reason;
  }
  local_->Abort(reason.message());
  mesh_->Abort(reason.message());
  absl::MutexLock lock(&mutex_);
  return aborted_.ok() ? reason : aborted_;
}

absl::Status HierarchicalCommunicator::ExplainHostFailure(absl::string_view operation,
                                                          const absl::Status& status) {
  const std::string what = absl::StrCat(operation, " (", ToString(), "): ");
  // The mesh's reason is preferred: the host's communicator numbers the ranks differently, and does
  // not know why another rank aborted.
  if (absl::IsUnavailable(status) || absl::IsAborted(status)) {
    absl::MutexLock lock(&mutex_);
    const auto told = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !mesh_status_.ok() || !aborted_.ok();
    };
    Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&told),
                                    Clock::Real().Now() + kNewsTimeout);
    if (!mesh_status_.ok()) {
      return WithText(mesh_status_, absl::StrCat(what, mesh_status_.message()));
    }
  }
  return absl::Status(status.code(),
                      absl::StrCat(what, "in the host, whose ranks 0, 1, ... are ranks ",
                                   absl::StrJoin(layout_.members(), ", "), ": ", status.message()));
}

// Runs on a thread of the mesh. Wakes this rank if it waits within its host, for a rank that waits
// in the mesh and will never come.
void HierarchicalCommunicator::OnMeshBroken(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    mesh_status_ = why;
  }
  local_->Abort(why.message());
}

void HierarchicalCommunicator::Abort(absl::string_view reason) {
  {
    absl::MutexLock lock(&mutex_);
    if (aborted_.ok()) aborted_ = absl::AbortedError(reason);
  }
  local_->Abort(reason);
  mesh_->Abort(reason);
}

}  // namespace hvd::collectives::hierarchical
