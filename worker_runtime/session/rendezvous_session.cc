#include "worker_runtime/session/rendezvous_session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/os/boot_time.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "base/text/shortened.h"
#include "base/text/utf8.h"
#include "rendezvous/transport/placement_message.h"

namespace hvd::worker_runtime::session {
namespace {

// The longest time of one WatchEpoch call. The call is then repeated, which bounds the delay if a
// reply is lost with its connection.
constexpr absl::Duration kWatchTimeout = absl::Minutes(5);
constexpr absl::Duration kStatusTimeout = absl::Seconds(5);
constexpr absl::Duration kMembersTimeout = absl::Seconds(30);

// What a script says, as it may be told to the daemon: a text of a few KiB that Protobuf accepts.
std::string ToTell(const std::string& words) { return text::Shortened(text::ToUtf8(words)); }

// A key exchange through the daemon: one Exchange call per key, which returns when the daemon has
// the values of all members.
class SessionKeyExchange : public collectives::KeyExchange {
 public:
  SessionKeyExchange(std::shared_ptr<rendezvous::client::RendezvousClient> client,
                     pb::WorkerIdentity identity, Epoch epoch)
      : client_(std::move(client)), identity_(std::move(identity)), epoch_(epoch) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    ASSIGN_OR_RETURN(const pb::ExchangeResponse response, Call(Request(key, value), timeout));
    return std::vector<std::string>(response.values().begin(), response.values().end());
  }

  absl::StatusOr<Selected> Gather(absl::string_view key, absl::string_view value,
                                  const std::vector<int>& ranks, absl::Duration timeout) override {
    pb::ExchangeRequest request = Request(key, value);
    request.mutable_selection();
    for (const int rank : ranks) request.mutable_selection()->add_ranks(rank);
    ASSIGN_OR_RETURN(const pb::ExchangeResponse response, Call(request, timeout));
    // Callers match the values with `ranks` by index.
    if (static_cast<size_t>(response.values_size()) != ranks.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the daemon has ", response.values_size(),
                                                     " of the values of ", ranks.size(),
                                                     " ranks for '", key, "'"));
    }
    return Selected{{response.values().begin(), response.values().end()}, response.all_equal()};
  }

 private:
  // The daemon answers when the last member has called, so a deadline that passes says nothing
  // about the daemon.
  absl::StatusOr<pb::ExchangeResponse> Call(const pb::ExchangeRequest& request,
                                            absl::Duration timeout) {
    auto response = client_->Exchange(request, timeout);
    if (!absl::IsDeadlineExceeded(response.status())) return response;
    return absl::DeadlineExceededError(
        "not all ranks have exchanged their addresses in time: some may not reach each other");
  }

  pb::ExchangeRequest Request(absl::string_view key, absl::string_view value) const {
    pb::ExchangeRequest request;
    *request.mutable_worker() = identity_;
    request.set_epoch(epoch_.value());
    request.set_key(std::string(key));
    request.set_value(std::string(value));
    return request;
  }

  const std::shared_ptr<rendezvous::client::RendezvousClient> client_;
  const pb::WorkerIdentity identity_;
  const Epoch epoch_;
};

Peer ToPeer(const pb::Member& member) {
  return {member.host(),
          member.address(),
          static_cast<int>(member.port()),
          rendezvous::transport::FromMessage(member.placement()),
          WorkerId(member.worker().worker_id()),
          Incarnation(member.worker().incarnation())};
}

absl::StatusOr<std::vector<Peer>> ToPeers(
    const google::protobuf::RepeatedPtrField<pb::Member>& members) {
  std::vector<Peer> peers;
  // Checked, because callers use the rank as the index.
  for (const pb::Member& member : members) {
    if (member.placement().rank() != static_cast<int>(peers.size())) {
      return absl::InternalError("the world's members are not in order");
    }
    peers.push_back(ToPeer(member));
  }
  return peers;
}

// Converts the daemon's answer. `members` stays null if the answer does not name all of them.
absl::StatusOr<WorkerWorld> ToWorld(const pb::World& world, WorkerId self) {
  WorkerWorld result;
  result.sync_state = world.sync_state();
  result.epoch = Epoch(world.epoch());
  result.secret = world.secret();
  result.homogeneous = world.homogeneous();
  result.encrypt_data = world.encrypt_data();
  result.on_corruption = settings::OnCorruptionOf(world.on_corruption());
  const auto own = std::find_if(world.members().begin(), world.members().end(), [&](const auto& m) {
    return m.worker().worker_id() == self.value();
  });
  if (own == world.members().end() || own->placement().rank() < 0 ||
      own->placement().rank() >= own->placement().size()) {
    return absl::InternalError("the world does not contain this worker");
  }
  // There is at least one member: `own`.
  if (world.members(0).placement().rank() != 0)
    return absl::InternalError("the world does not name rank 0");
  result.own = ToPeer(*own);
  result.root = ToPeer(world.members(0));
  if (world.members_size() == result.size()) {
    ASSIGN_OR_RETURN(std::vector<Peer> peers, ToPeers(world.members()));
    result.members = std::make_shared<Members>(std::move(peers));
  }
  return result;
}

}  // namespace

EpochWatch::EpochWatch(std::unique_ptr<rendezvous::client::RendezvousClient> client,
                       pb::WatchEpochRequest request, absl::Duration reattach, Callback on_change)
    : client_(std::move(client)),
      reattach_(reattach),
      on_change_(std::move(on_change)),
      thread_(StartSignalFreeThread([this, request = std::move(request)] { Run(request); })) {}

EpochWatch::~EpochWatch() {
  // The thread is parked in a call for minutes. A call that begins after this returns at once, too.
  client_->CancelAll();
  thread_.join();
}

void EpochWatch::Run(pb::WatchEpochRequest request) {
  bool away = false;  // the daemon
  while (true) {
    const auto response = client_->WatchEpoch(request, away ? reattach_ : kWatchTimeout);
    if (absl::IsCancelled(response.status())) return;
    // After the first Unavailable, one more call with the timeout `reattach_` gives the daemon time
    // to restart. If it fails as well, the epoch is over for this worker.
    const bool goes_away = absl::IsUnavailable(response.status()) && !away;
    if (goes_away && reattach_ > absl::ZeroDuration()) {
      away = true;
      continue;
    }
    away = false;
    if (absl::IsDeadlineExceeded(response.status())) continue;  // nothing has changed
    if (!response.ok()) {
      return on_change_(EpochEvent::kOver, std::string(response.status().message()));
    }
    if (response->change() == pb::WatchEpochResponse::EPOCH_CHANGING) {
      // The next call then waits for the end of the epoch rather than return the same change again.
      request.set_knows_of_change(true);
      on_change_(EpochEvent::kChanging, response->reason());
      continue;
    }
    const bool over = response->change() == pb::WatchEpochResponse::JOB_OVER;
    return on_change_(over ? EpochEvent::kOver : EpochEvent::kBroken, response->reason());
  }
}

Session::Session(WorkerStanding standing, Incarnation incarnation, ClientFactory new_client)
    : standing_(std::move(standing)),
      incarnation_(incarnation),
      new_client_(std::move(new_client)) {}

std::shared_ptr<rendezvous::client::RendezvousClient> Session::client() {
  absl::MutexLock lock(&mutex_);
  if (client_ == nullptr) client_ = new_client_();
  return client_;
}

absl::StatusOr<pb::JoinWorldResponse> Session::Join(const pb::JoinWorldRequest& request,
                                                    absl::Duration timeout) {
  const std::shared_ptr<rendezvous::client::RendezvousClient> client = this->client();
  // The daemon may be restarting, and this worker is needed when it is back.
  const absl::Duration patience = std::max(timeout, standing_.reattach);
  while (true) {
    const auto response = client->JoinWorld(request, patience);
    if (absl::IsUnavailable(response.status())) {
      return absl::FailedPreconditionError(response.status().message());
    }
    if (!absl::IsDeadlineExceeded(response.status())) return response;
    // The daemon's status explains the delay. In an elastic job the daemon itself decides how long
    // to wait, so as long as it answers, the worker asks again.
    const auto status = client->GetStatus(kStatusTimeout);
    if (standing_.elastic && status.ok()) continue;
    return absl::DeadlineExceededError(
        absl::StrCat("no world within ", absl::FormatDuration(patience), ": the daemon is ",
                     status.ok() ? status->explanation() : "unreachable"));
  }
}

absl::StatusOr<JoinAnswer> Session::JoinNextWorld(pb::JoinWorldRequest request,
                                                  absl::Duration timeout) {
  FillIdentity(request.mutable_worker());
  // By the last epoch the daemon recognises a repeated request whose answer was lost. That one gets
  // the same world again, and does not break it.
  request.set_last_epoch(last_epoch().value());
  request.set_address(standing_.advertise_address);
  request.set_left_for(ToTell(request.left_for()));
  ASSIGN_OR_RETURN(const pb::JoinWorldResponse response, Join(request, timeout));
  if (response.has_released()) return ReleasedFromJob{response.released().reason()};
  if (response.has_deferred()) {
    const pb::Deferred& deferred = response.deferred();
    if (request.may_defer()) {
      return DeferredPlace{rendezvous::transport::FromMessage(deferred.member().placement())};
    }
    return absl::InternalError("the daemon has deferred a worker that has not asked for it");
  }
  ASSIGN_OR_RETURN(WorkerWorld world, ToWorld(response.world(), standing_.id));
  // A large world's answer names only rank 0 and this worker. The others are fetched when needed.
  if (world.members == nullptr) {
    world.members = std::make_shared<Members>(
        [this, epoch = world.epoch, size = world.size()] { return AskForMembers(epoch, size); });
  }
  absl::MutexLock lock(&mutex_);
  last_epoch_ = world.epoch;
  return world;
}

absl::StatusOr<std::vector<Peer>> Session::AskForMembers(Epoch epoch, int size) {
  pb::GetMembersRequest request;
  request.set_epoch(epoch.value());
  ASSIGN_OR_RETURN(const pb::GetMembersResponse response,
                   client()->GetMembers(request, std::max(kMembersTimeout, standing_.reattach)));
  if (response.members_size() != size) {
    return absl::InternalError("the daemon does not name all members of the world");
  }
  return ToPeers(response.members());
}

Epoch Session::last_epoch() const {
  absl::MutexLock lock(&mutex_);
  return last_epoch_;
}

std::unique_ptr<collectives::KeyExchange> Session::NewKeyExchange(Epoch epoch) {
  pb::WorkerIdentity identity;
  FillIdentity(&identity);
  return std::make_unique<SessionKeyExchange>(client(), std::move(identity), epoch);
}

std::unique_ptr<EpochWatch> Session::Watch(Epoch epoch, EpochWatch::Callback on_change) {
  pb::WatchEpochRequest request;
  FillIdentity(request.mutable_worker());
  request.set_epoch(epoch.value());
  // A client of its own, since the watch's end cancels all calls of its client.
  return std::make_unique<EpochWatch>(new_client_(), std::move(request), standing_.reattach,
                                      std::move(on_change));
}

std::unique_ptr<StallReporter> Session::NewStallReporter(StallReporter::Untold untold) {
  return std::make_unique<StallReporter>(new_client_(), std::move(untold));
}

pb::ReportStallRequest Session::StallRequest(Epoch epoch) const {
  pb::ReportStallRequest request;
  FillIdentity(request.mutable_worker());
  request.set_epoch(epoch.value());
  return request;
}

void Session::NoteCommit(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  commit_ = number;
  committed_ = os::ReadBootTime().since_boot;
}

void Session::NoteBegin(Epoch epoch, uint64_t commit) {
  absl::MutexLock lock(&mutex_);
  begun_ = epoch;
  began_with_ = commit;
}

void Session::NoteCheckpoints(const Checkpoints& checkpoints) {
  absl::MutexLock lock(&mutex_);
  checkpoints_ = checkpoints;
  checkpoints_at_ = os::ReadBootTime().since_boot;
}

absl::Status Session::ReportProgress(rendezvous::client::RendezvousClient& client, Epoch epoch,
                                     absl::Duration timeout) {
  pb::ReportRequest request;
  FillIdentity(request.mutable_worker());
  request.set_epoch(epoch.value());
  {
    absl::MutexLock lock(&mutex_);
    FillProgress(epoch, *request.mutable_progress());
  }
  return client.Report(request, timeout).status();
}

// Ages, since the clocks of hosts differ; measured with the clock that also runs during a
// suspension.
void Session::FillProgress(Epoch epoch, pb::Progress& progress) const {
  const auto milliseconds = [](absl::Duration age) {
    return static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Milliseconds(age), 0));
  };
  const absl::Duration now = os::ReadBootTime().since_boot;
  progress.set_commit(commit_);
  progress.set_commit_age_ms(milliseconds(now - committed_));
  if (begun_ == epoch && epoch > Epoch(0)) progress.set_began_with(began_with_);
  if (!checkpoints_.has_value()) return;
  pb::Checkpoints& told = *progress.mutable_checkpoints();
  told.set_commit(checkpoints_->commit);
  if (checkpoints_->age < absl::InfiniteDuration())
    told.set_age_ms(milliseconds(checkpoints_->age + (now - checkpoints_at_)));
  told.set_place(ToTell(checkpoints_->place));
  told.set_failure(ToTell(checkpoints_->failure));
}

std::unique_ptr<WorldLease> Session::NewLease(Epoch epoch, absl::Duration patience) {
  // A separate client: CancelAll must end the lease's calls only. The daemon forms no other world
  // within the sum of the two times: see WorldLease.
  const std::shared_ptr<rendezvous::client::RendezvousClient> client = new_client_();
  return std::make_unique<WorldLease>(
      [this, client, epoch](absl::Duration timeout) {
        return ReportProgress(*client, epoch, timeout);
      },
      [client] { client->CancelAll(); }, patience + standing_.reattach, os::ReadBootTime,
      standing_.report_pause);
}

absl::Status Session::ReportFinished(Epoch epoch, absl::Duration timeout) {
  pb::ReportRequest request;
  FillIdentity(request.mutable_worker());
  request.set_epoch(epoch.value());
  request.mutable_finished();
  return ReportAndDisconnect(request, timeout);
}

absl::Status Session::ReportFailure(Epoch epoch, const FailureReport& failure,
                                    absl::Duration timeout) {
  pb::ReportRequest request;
  FillIdentity(request.mutable_worker());
  request.set_epoch(epoch.value());
  request.mutable_failure()->set_message(ToTell(failure.message));
  request.mutable_failure()->set_caused_by_peer(failure.caused_by_peer);
  request.mutable_failure()->set_commit(failure.commit);
  request.mutable_failure()->set_ends_job(failure.ends_job);
  return ReportAndDisconnect(request, timeout);
}

absl::Status Session::ReportAndDisconnect(const pb::ReportRequest& request,
                                          absl::Duration timeout) {
  const std::shared_ptr<rendezvous::client::RendezvousClient> client = this->client();
  // The local reference keeps the client alive during the call, whatever other threads do.
  absl::Status told = client->Report(request, timeout).status();
  absl::MutexLock lock(&mutex_);
  client_ = nullptr;  // destroyed after the lock is released, with `client`
  return told;
}

void Session::FillIdentity(pb::WorkerIdentity* identity) const {
  identity->set_worker_id(standing_.id.value());
  identity->set_incarnation(incarnation_.value());
}

}  // namespace hvd::worker_runtime::session
