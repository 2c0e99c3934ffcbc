#include "collectives/shm/shm_backend.h"

#include <utility>

#include "base/status_macros.h"
#include "collectives/rank_text.h"
#include "collectives/shm/segment/segment_setup.h"
#include "collectives/shm/shm_communicator.h"
#include "collectives/shm/shm_links.h"

namespace hvd::collectives::shm {
namespace {

absl::Status CheckGroup(const GroupInfo& group) {
  RETURN_IF_ERROR(CheckRank(group));
  if (group.secret.empty()) return absl::InvalidArgumentError("the group has no secret");
  return absl::OkStatus();
}

class ShmBackend : public Backend {
 public:
  explicit ShmBackend(ShmWriting writing) : writing_(writing) {}

  absl::string_view name() const override { return "shm"; }

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    RETURN_IF_ERROR(CheckGroup(group));
    auto connected = ConnectRanks(group, keys, bounds);
    if (connected.ok()) return connected;
    return ConnectError("shm", group, connected.status());
  }

 private:
  absl::StatusOr<std::unique_ptr<Communicator>> ConnectRanks(const GroupInfo& group,
                                                             KeyExchange& keys,
                                                             const WaitBounds& bounds) {
    ASSIGN_OR_RETURN(segment::SegmentSetup setup, segment::SetUpSegment(group, keys, bounds));
    ASSIGN_OR_RETURN(auto links, ShmLinks::Make(std::move(setup), group.rank, group.size));
    return std::make_unique<ShmCommunicator>(group.epoch, std::move(links), writing_);
  }

  const ShmWriting writing_;
};

}  // namespace

std::unique_ptr<Backend> MakeShmBackend(ShmWriting writing) {
  return std::make_unique<ShmBackend>(writing);
}

}  // namespace hvd::collectives::shm
