#include "collectives/messages/messenger.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/hierarchical/host_exchange.h"
#include "collectives/hierarchical/host_layout.h"
#include "collectives/hierarchical/host_reach.h"
#include "collectives/messages/messenger_core.h"
#include "collectives/peer/peer_port.h"
#include "collectives/rank_text.h"
#include "collectives/shm/segment/segment_setup.h"
#include "collectives/tcp/link_address.h"

namespace hvd::collectives::messages {
namespace {

using hierarchical::HostExchange;
using hierarchical::HostLayout;
using hierarchical::HostReach;
using hierarchical::ReachExchange;

constexpr char kRanksKey[] = "messages-ranks";
constexpr char kHostKey[] = "messages-host";

// One Connect.
class Setup {
 public:
  Setup(const GroupInfo& group, KeyExchange& keys, const WaitBounds& bounds)
      : group_(group),
        keys_(keys),
        bounds_(bounds),
        deadline_(Clock::Real().Now() + bounds.timeout),
        endpoint_(std::make_unique<Endpoint>(group.rank, group.size)) {}

  absl::StatusOr<std::unique_ptr<MessengerCore>> Run(const std::string& host_identity) {
    RETURN_IF_ERROR(CheckRank(group_));
    if (group_.size == 1) return MessengerCore::Start(std::move(endpoint_), nullptr, nullptr);
    RETURN_IF_ERROR(Listen());
    RETURN_IF_ERROR(MeetRanks(host_identity));
    ASSIGN_OR_RETURN(std::unique_ptr<HostLines> host, ConnectHost());
    std::unique_ptr<FarLines> far;
    if (host == nullptr || !layout_.OneHost()) {
      ASSIGN_OR_RETURN(
          far, FarLines::Make(group_, std::move(inbox_), std::move(addresses_), bounds_.timeout));
    }
    return MessengerCore::Start(std::move(endpoint_), std::move(host), std::move(far));
  }

 private:
  WaitBounds Left() const {
    return {std::max(deadline_ - Clock::Real().Now(), absl::ZeroDuration()), bounds_.cancellation};
  }

  // Before any peer can know the address.
  absl::Status Listen() {
    if (group_.port == nullptr) {
      ASSIGN_OR_RETURN(group_.port, peer::PeerPort::Open(group_.address));
    }
    ASSIGN_OR_RETURN(inbox_, peer::PeerInbox::Enter(group_));
    return absl::OkStatus();
  }

  // A rank's entry is its address, its host's identity, a line break, the name of its HostReach.
  absl::Status MeetRanks(const std::string& host_identity) {
    if (!host_identity.empty()) reach_ = HostReach::Open();
    const std::string entry =
        absl::StrCat(tcp::LinkAddressOf(inbox_->address()), host_identity, "\n", reach_.name());
    ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                     keys_.AllGather(kRanksKey, entry, Left().timeout));
    std::vector<std::string> identities, names;
    for (const absl::string_view each : entries) {
      const size_t end = each.rfind('\n');
      if (end == absl::string_view::npos || end < tcp::kLinkAddressBytes) {
        return absl::InternalError("a rank's entry in the key exchange is malformed");
      }
      addresses_.emplace_back(each.substr(0, tcp::kLinkAddressBytes));
      identities.emplace_back(each.substr(tcp::kLinkAddressBytes, end - tcp::kLinkAddressBytes));
      names.emplace_back(each.substr(end + 1));
    }
    layout_ = hierarchical::LayOutHosts(identities, group_.rank);
    reaches_first_ =
        layout_.members().size() > 1 && HostReach::CanReach(names[layout_.members().front()]);
    return absl::OkStatus();
  }

  // Every rank takes part in the round, even one that is alone on its host. Either all ranks of a
  // host share memory or none: then this returns nullptr.
  absl::StatusOr<std::unique_ptr<HostLines>> ConnectHost() {
    if (layout_.AllApart()) return nullptr;
    GroupInfo host = group_;
    host.rank = layout_.index;
    host.size = static_cast<int>(layout_.members().size());
    HostExchange host_keys(keys_, kHostKey, layout_.members());
    if (host.size == 1) {
      RETURN_IF_ERROR(host_keys.Finish(Left().timeout));
      return nullptr;
    }
    ReachExchange reach_keys(host_keys, reaches_first_);
    auto setup = shm::segment::SetUpSegment(host, reach_keys, Left());
    RETURN_IF_ERROR(host_keys.Finish(Left().timeout));
    if (absl::IsUnimplemented(setup.status())) return nullptr;
    RETURN_IF_ERROR(setup.status());
    ASSIGN_OR_RETURN(auto links, shm::ShmLinks::Make(*std::move(setup), host.rank, host.size));
    return std::make_unique<HostLines>(std::move(links), layout_.members(), *endpoint_);
  }

  GroupInfo group_;
  KeyExchange& keys_;
  const WaitBounds bounds_;
  const absl::Time deadline_;
  std::unique_ptr<Endpoint> endpoint_;
  std::shared_ptr<peer::PeerInbox> inbox_;
  HostReach reach_;
  std::vector<std::string> addresses_;
  HostLayout layout_;
  bool reaches_first_ = false;
};

TransferPtr FailInChild(Transfer::Direction direction, int peer, const Message& message,
                        const std::function<void()>& then) {
  auto failed = std::make_shared<Transfer>(
      direction, peer, message,
      absl::FailedPreconditionError("this process was forked from one that has the messenger"));
  if (then) then();
  return failed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Messenger>> Messenger::Connect(const GroupInfo& group,
                                                              KeyExchange& keys,
                                                              const WaitBounds& bounds,
                                                              const std::string& host_identity) {
  auto core = Setup(group, keys, bounds).Run(host_identity);
  if (!core.ok()) return ConnectError("messages", group, core.status());
  return std::unique_ptr<Messenger>(new Messenger(*std::move(core)));
}

Messenger::Messenger(std::unique_ptr<MessengerCore> core) : core_(std::move(core)) {}

// A forked child shares the segment and the connections, and must leave them alone. It has no
// threads that could be joined.
Messenger::~Messenger() {
  if (!core_->IsOwnProcess()) (void)core_.release();
}

TransferPtr Messenger::Send(int peer, const Message& message, const void* data, size_t bytes,
                            std::function<void()> then) {
  if (!core_->IsOwnProcess()) return FailInChild(Transfer::Direction::kSend, peer, message, then);
  return core_->Send(peer, message, data, bytes, std::move(then));
}

TransferPtr Messenger::Receive(int source_or_any, const Message& message, void* data, size_t bytes,
                               std::function<void()> then) {
  if (!core_->IsOwnProcess()) {
    return FailInChild(Transfer::Direction::kReceive, source_or_any, message, then);
  }
  return core_->Receive(source_or_any, message, data, bytes, std::move(then));
}

bool Messenger::WaitAWhile(const Transfer& transfer, absl::Duration most) {
  return core_->IsOwnProcess() ? core_->WaitAWhile(transfer, most) : transfer.done();
}

void Messenger::OnBroken(std::function<void(const absl::Status&)> listener) {
  if (core_->IsOwnProcess()) core_->OnBroken(std::move(listener));
}

void Messenger::Leave() {
  if (core_->IsOwnProcess()) core_->Leave();
}

bool Messenger::broken() const { return core_->IsOwnProcess() && core_->broken(); }

void Messenger::Abort(const absl::Status& why) {
  if (core_->IsOwnProcess()) core_->Abort(why);
}

}  // namespace hvd::collectives::messages
