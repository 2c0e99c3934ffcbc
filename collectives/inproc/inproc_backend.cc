#include "collectives/inproc/inproc_backend.h"

#include <map>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/inproc/hub.h"
#include "collectives/inproc/inproc_communicator.h"

namespace hvd::collectives::inproc {
namespace {

class InprocBackend : public MeshBackend {
 public:
  absl::string_view name() const override { return "inproc"; }

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    return ConnectMesh(group, keys, bounds);
  }

  absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectMesh(const GroupInfo& group,
                                                                KeyExchange& keys,
                                                                const WaitBounds& bounds) override {
    RETURN_IF_ERROR(CheckRank(group));
    const std::shared_ptr<Hub> hub = HubOf(group);
    RETURN_IF_ERROR(hub->Join(group.rank, group.secret, Clock::Real().Now() + bounds.timeout));
    return std::make_unique<InprocCommunicator>(std::make_shared<HubMember>(hub, group.rank),
                                                group.epoch, AllRanks(group.size));
  }

 private:
  static std::vector<int> AllRanks(int size) {
    std::vector<int> ranks(size);
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  // The group's hub. The first rank makes it, with its secret; Join() compares those of the others.
  std::shared_ptr<Hub> HubOf(const GroupInfo& group) {
    absl::MutexLock lock(&mutex_);
    // Kept after its ranks have left, so that one epoch never means two groups.
    std::shared_ptr<Hub>& hub = hubs_[group.epoch];
    if (hub == nullptr) hub = std::make_shared<Hub>(group.size, group.secret);
    return hub;
  }

  absl::Mutex mutex_;
  std::map<Epoch, std::shared_ptr<Hub>> hubs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<MeshBackend> MakeInprocBackend() { return std::make_unique<InprocBackend>(); }

}  // namespace hvd::collectives::inproc
