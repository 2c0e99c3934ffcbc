#include "worker_runtime/session/session.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd {
namespace {

// A parked watch is asked again after this time, so that a reply lost with its connection costs no
// more.
constexpr absl::Duration kWatchTimeout = absl::Minutes(5);

class SessionKeyExchange : public KeyExchange {
 public:
  SessionKeyExchange(RendezvousClient& client, pb::WorkerIdentity identity, Epoch epoch)
      : client_(client), identity_(std::move(identity)), epoch_(epoch) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    pb::ExchangeRequest request;
    *request.mutable_worker() = identity_;
    request.set_epoch(epoch_.value());
    request.set_key(std::string(key));
    request.set_value(std::string(value));
    ASSIGN_OR_RETURN(pb::ExchangeResponse response, client_.Exchange(request, timeout));
    return std::vector<std::string>(response.values().begin(), response.values().end());
  }

 private:
  RendezvousClient& client_;
  const pb::WorkerIdentity identity_;
  const Epoch epoch_;
};

absl::StatusOr<WorkerWorld> ToWorld(const pb::World& world, WorkerId self) {
  WorkerWorld result;
  result.epoch = Epoch(world.epoch());
  result.secret = world.secret();
  result.rank = -1;
  for (const pb::Member& member : world.members()) {
    const int rank = static_cast<int>(result.peers.size());
    if (member.rank() != rank) return absl::InternalError("the world's members are not in order");
    if (member.worker().worker_id() == self.value()) result.rank = rank;
    result.peers.push_back({member.host(), member.address(),
                            static_cast<int>(member.control_port()), member.local_rank(),
                            member.local_size(), member.cross_rank(), member.cross_size()});
  }
  if (result.rank < 0) return absl::InternalError("the world does not contain this worker");
  return result;
}

}  // namespace

EpochWatch::EpochWatch(std::unique_ptr<RendezvousClient> client, pb::WatchEpochRequest request,
                       std::function<void(std::string)> on_change)
    : client_(std::move(client)),
      on_change_(std::move(on_change)),
      thread_([this, request = std::move(request)] { Run(request); }) {}

EpochWatch::~EpochWatch() {
  client_->CancelAll();
  thread_.join();
}

void EpochWatch::Run(const pb::WatchEpochRequest& request) {
  while (true) {
    const auto response = client_->WatchEpoch(request, kWatchTimeout);
    if (response.ok()) return on_change_(response->reason());
    if (absl::IsCancelled(response.status())) return;
    if (absl::IsDeadlineExceeded(response.status())) continue;
    return on_change_(std::string(response.status().message()));
  }
}

Session::Session(WorkerId worker_id, Incarnation incarnation, std::string advertise_address,
                 ClientFactory new_client)
    : worker_id_(worker_id),
      incarnation_(incarnation),
      advertise_address_(std::move(advertise_address)),
      new_client_(std::move(new_client)),
      client_(new_client_()) {}

absl::StatusOr<WorkerWorld> Session::JoinNextWorld(int control_port, absl::Duration timeout) {
  pb::JoinWorldRequest request;
  FillIdentity(request.mutable_worker());
  request.set_last_epoch(last_epoch_.value());
  request.set_address(advertise_address_);
  request.set_control_port(control_port);
  const auto response = client_->JoinWorld(request, timeout);
  if (absl::IsDeadlineExceeded(response.status())) {
    const auto status = client_->GetStatus(absl::Seconds(5));
    return absl::DeadlineExceededError(
        absl::StrCat("no world within ", absl::FormatDuration(timeout), ": the daemon is ",
                     status.ok() ? status->explanation() : "not to be reached"));
  }
  if (!response.ok()) return response.status();
  ASSIGN_OR_RETURN(WorkerWorld world, ToWorld(response->world(), worker_id_));
  last_epoch_ = world.epoch;
  return world;
}

std::unique_ptr<KeyExchange> Session::NewKeyExchange(Epoch epoch) {
  pb::WorkerIdentity identity;
  FillIdentity(&identity);
  return std::make_unique<SessionKeyExchange>(*client_, std::move(identity), epoch);
}

std::unique_ptr<EpochWatch> Session::Watch(Epoch epoch,
                                           std::function<void(std::string)> on_change) {
  pb::WatchEpochRequest request;
  FillIdentity(request.mutable_worker());
  request.set_epoch(epoch.value());
  return std::make_unique<EpochWatch>(new_client_(), std::move(request), std::move(on_change));
}

absl::Status Session::ReportFinished(Epoch epoch, absl::Duration timeout) {
  pb::ReportRequest request;
  FillIdentity(request.mutable_worker());
  request.set_epoch(epoch.value());
  request.mutable_finished();
  return client_->Report(request, timeout).status();
}

absl::Status Session::ReportFailure(Epoch epoch, const std::string& message, bool caused_by_peer,
                                    absl::Duration timeout) {
  pb::ReportRequest request;
  FillIdentity(request.mutable_worker());
  request.set_epoch(epoch.value());
  request.mutable_failure()->set_message(message);
  request.mutable_failure()->set_caused_by_peer(caused_by_peer);
  return client_->Report(request, timeout).status();
}

void Session::FillIdentity(pb::WorkerIdentity* identity) const {
  identity->set_worker_id(worker_id_.value());
  identity->set_incarnation(incarnation_.value());
}

}  // namespace hvd
