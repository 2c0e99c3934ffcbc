#include "worker_runtime/api/testing/fake_daemon.h"

#include <algorithm>
#include <utility>

namespace hvd::worker_runtime::api {

// The client of one user of the daemon; CancelAll ends its calls only.
class FakeDaemonClient : public rendezvous::client::RendezvousClient {
 public:
  explicit FakeDaemonClient(FakeDaemon& daemon) : daemon_(daemon) {}

  absl::StatusOr<pb::JoinWorldResponse> JoinWorld(const pb::JoinWorldRequest& request,
                                                  absl::Duration) override {
    return daemon_.Join(request, cancelled_);
  }
  absl::StatusOr<pb::GetMembersResponse> GetMembers(const pb::GetMembersRequest&,
                                                    absl::Duration) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<pb::WatchEpochResponse> WatchEpoch(const pb::WatchEpochRequest& request,
                                                    absl::Duration) override {
    return daemon_.Watch(request, cancelled_);
  }
  absl::StatusOr<pb::ExchangeResponse> Exchange(const pb::ExchangeRequest& request,
                                                absl::Duration) override {
    return daemon_.Exchange(request, cancelled_);
  }
  absl::StatusOr<pb::ReportResponse> Report(const pb::ReportRequest& request,
                                            absl::Duration) override {
    return daemon_.Report(request);
  }
  absl::StatusOr<pb::ReportStallResponse> ReportStall(const pb::ReportStallRequest& request,
                                                      absl::Duration) override {
    daemon_.ReportStall(request);
    return pb::ReportStallResponse();
  }
  absl::StatusOr<pb::GetStatusResponse> GetStatus(absl::Duration) override {
    return pb::GetStatusResponse();
  }
  void CancelAll() override { daemon_.Cancel(cancelled_); }

 private:
  FakeDaemon& daemon_;
  bool cancelled_ = false;  // under the daemon's lock
};

session::ClientFactory FakeDaemon::NewClients() {
  return [this] { return std::make_unique<FakeDaemonClient>(*this); };
}

void FakeDaemon::AnswerNextJoin(uint64_t worker, pb::JoinWorldResponse answer) {
  absl::MutexLock lock(&mutex_);
  answers_[worker].push_back(std::move(answer));
}

void FakeDaemon::ReportStall(const pb::ReportStallRequest& request) {
  absl::MutexLock lock(&mutex_);
  stalls_.push_back(request);
}

pb::ReportStallRequest FakeDaemon::AwaitStall(const std::string& what) {
  absl::MutexLock lock(&mutex_);
  pb::ReportStallRequest found;
  const auto reported = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const pb::ReportStallRequest& stall : stalls_) {
      if (stall.waiting(0).what() == what) found = stall;
    }
    return found.waiting_size() > 0;
  };
  mutex_.Await(absl::Condition(&reported));
  return found;
}

void FakeDaemon::SetSize(int size) {
  absl::MutexLock lock(&mutex_);
  size_ = size;
  FormWorld();
}

void FakeDaemon::Break(const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  broken_ = true;
  reason_ = reason;
}

void FakeDaemon::Change(const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  changing_ = true;
  reason_ = reason;
}

void FakeDaemon::AwaitJoins(int count) {
  absl::MutexLock lock(&mutex_);
  auto enough = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(waiting_.size()) >= count;
  };
  mutex_.Await(absl::Condition(&enough));
}

void FakeDaemon::AwaitExchanges(int count) {
  absl::MutexLock lock(&mutex_);
  auto enough = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::any_of(rounds_.begin(), rounds_.end(), [count](const auto& round) {
      return static_cast<int>(round.second.size()) >= count;
    });
  };
  mutex_.Await(absl::Condition(&enough));
}

std::vector<pb::JoinWorldRequest> FakeDaemon::joins() const {
  absl::MutexLock lock(&mutex_);
  return joins_;
}

std::vector<pb::ReportRequest> FakeDaemon::reports() const {
  absl::MutexLock lock(&mutex_);
  return reports_;
}

absl::StatusOr<pb::JoinWorldResponse> FakeDaemon::Join(const pb::JoinWorldRequest& request,
                                                       const bool& cancelled) {
  absl::MutexLock lock(&mutex_);
  const uint64_t worker = request.worker().worker_id();
  joins_.push_back(request);
  if (answers_[worker].empty()) {
    waiting_[worker] = request;
    // A worker that asks for the next world leaves the present one.
    if (request.last_epoch() == world_.epoch() && world_.epoch() > 0 && !changing_) {
      broken_ = true;
      reason_ = "a member has left";
    }
    FormWorld();
  }
  auto answered = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !answers_[worker].empty() || cancelled;
  };
  mutex_.Await(absl::Condition(&answered));
  if (cancelled) return absl::CancelledError("cancelled");
  pb::JoinWorldResponse answer = std::move(answers_[worker].front());
  answers_[worker].pop_front();
  return answer;
}

void FakeDaemon::FormWorld() {
  if (static_cast<int>(waiting_.size()) < size_) return;
  pb::World world;
  world.set_epoch(world_.epoch() + 1);
  world.set_secret("secret");
  for (const auto& [worker, request] : waiting_) {
    pb::Member* member = world.add_members();
    *member->mutable_worker() = request.worker();
    member->set_host("localhost");
    member->set_address(request.address());
    member->set_port(request.port());
    pb::Placement& place = *member->mutable_placement();
    place.set_rank(world.members_size() - 1);
    place.set_size(static_cast<int>(waiting_.size()));
    place.set_local_rank(place.rank());
    place.set_local_size(place.size());
    place.set_cross_size(1);
  }
  world.set_homogeneous(true);
  for (const auto& [worker, request] : std::exchange(waiting_, {})) {
    *answers_[worker].emplace_back().mutable_world() = world;
  }
  world_ = world;
  broken_ = changing_ = false;
  rounds_.clear();
}

absl::StatusOr<pb::WatchEpochResponse> FakeDaemon::Watch(const pb::WatchEpochRequest& request,
                                                         const bool& cancelled) {
  absl::MutexLock lock(&mutex_);
  auto news = [&] {
    mutex_.AssertHeld();
    return cancelled || IsOver(request.epoch()) || (changing_ && !request.knows_of_change());
  };
  mutex_.Await(absl::Condition(&news));
  if (cancelled) return absl::CancelledError("cancelled");
  pb::WatchEpochResponse response;
  response.set_change(IsOver(request.epoch()) ? pb::WatchEpochResponse::EPOCH_BROKEN
                                              : pb::WatchEpochResponse::EPOCH_CHANGING);
  response.set_reason(reason_);
  return response;
}

absl::StatusOr<pb::ExchangeResponse> FakeDaemon::Exchange(const pb::ExchangeRequest& request,
                                                          const bool& cancelled) {
  absl::MutexLock lock(&mutex_);
  const absl::Status over = absl::FailedPreconditionError("the epoch is over");
  if (IsOver(request.epoch())) return over;
  int rank = 0;
  while (world_.members(rank).worker().worker_id() != request.worker().worker_id()) ++rank;
  const auto size = static_cast<size_t>(world_.members_size());
  rounds_[request.key()][rank] = request.value();
  auto done = [&] {
    mutex_.AssertHeld();
    return cancelled || IsOver(request.epoch()) || rounds_[request.key()].size() == size;
  };
  mutex_.Await(absl::Condition(&done));
  if (cancelled) return absl::CancelledError("cancelled");
  if (IsOver(request.epoch())) return over;
  pb::ExchangeResponse response;
  const std::map<int, std::string>& values = rounds_[request.key()];
  const std::string& first = values.begin()->second;
  response.set_all_equal(std::all_of(values.begin(), values.end(),
                                     [&](const auto& given) { return given.second == first; }));
  for (const auto& [rank, value] : values) {
    if (!request.has_selection()) response.add_values(value);
  }
  for (const uint32_t rank : request.selection().ranks()) {
    response.add_values(values.at(static_cast<int>(rank)));
  }
  return response;
}

absl::StatusOr<pb::ReportResponse> FakeDaemon::Report(const pb::ReportRequest& request) {
  absl::MutexLock lock(&mutex_);
  if (!request.has_progress()) {
    reports_.push_back(request);
  } else if (IsOver(request.epoch())) {
    return absl::FailedPreconditionError("that world is over");
  }
  return pb::ReportResponse();
}

void FakeDaemon::Cancel(bool& cancelled) {
  absl::MutexLock lock(&mutex_);
  cancelled = true;
}

}  // namespace hvd::worker_runtime::api
