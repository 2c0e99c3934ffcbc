#include "rendezvous/client/grpc_rendezvous_client.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/net/peer/back_off.h"
#include "base/text/duration_text.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/transport/connection.h"
#include "rendezvous/transport/grpc_status.h"

namespace hvd::rendezvous::client {
namespace {

constexpr absl::Duration kShortestPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

class GrpcRendezvousClient final : public RendezvousClient {
 public:
  GrpcRendezvousClient(const std::string& address, std::shared_ptr<grpc::Channel> channel,
                       absl::Duration away, Clock& clock)
      : address_(address),
        away_patience_(away),
        clock_(clock),
        channel_(std::move(channel)),
        stub_(pb::Rendezvous::NewStub(channel_)) {}

  absl::StatusOr<pb::JoinWorldResponse> JoinWorld(const pb::JoinWorldRequest& request,
                                                  absl::Duration timeout) override {
    return Call("JoinWorld", &Stub::JoinWorld, request, timeout);
  }

  absl::StatusOr<pb::GetMembersResponse> GetMembers(const pb::GetMembersRequest& request,
                                                    absl::Duration timeout) override {
    return Call("GetMembers", &Stub::GetMembers, request, timeout);
  }

  absl::StatusOr<pb::WatchEpochResponse> WatchEpoch(const pb::WatchEpochRequest& request,
                                                    absl::Duration timeout) override {
    return Call("WatchEpoch", &Stub::WatchEpoch, request, timeout);
  }

  absl::StatusOr<pb::ExchangeResponse> Exchange(const pb::ExchangeRequest& request,
                                                absl::Duration timeout) override {
    return Call("Exchange", &Stub::Exchange, request, timeout);
  }

  absl::StatusOr<pb::ReportResponse> Report(const pb::ReportRequest& request,
                                            absl::Duration timeout) override {
    return Call("Report", &Stub::Report, request, timeout);
  }

  absl::StatusOr<pb::ReportStallResponse> ReportStall(const pb::ReportStallRequest& request,
                                                      absl::Duration timeout) override {
    return Call("ReportStall", &Stub::ReportStall, request, timeout);
  }

  absl::StatusOr<pb::GetStatusResponse> GetStatus(absl::Duration timeout) override {
    return Call("GetStatus", &Stub::GetStatus, pb::GetStatusRequest(), timeout);
  }

  void CancelAll() override {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
    // Under the lock, so that no context is destroyed meanwhile. That can't deadlock: TryCancel
    // does not run callbacks.
    for (grpc::ClientContext* context : in_flight_) context->TryCancel();
  }

 private:
  using Stub = pb::Rendezvous::StubInterface;
  template <typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(absl::string_view name, Method<Request, Response> method,
                                const Request& request, absl::Duration timeout) {
    // Each attempt runs until the deadline, or until the daemon would count as gone (`gone`) if
    // that is earlier. An attempt that ends at `gone` although there is a connection was parked by
    // the daemon, so it is repeated with the full timeout. Only "unavailable" is retried: any other
    // status is the daemon's answer.
    const absl::Time deadline = clock_.Now() + timeout;
    net::peer::BackOff back_off(kShortestPause, kLongestPause);
    std::mt19937 random{std::random_device{}()};
    grpc::Status away;  // status of the last attempt that did not reach the daemon
    // When the daemon counts as gone if it is not reached.
    absl::Time gone = absl::InfiniteFuture();
    bool parks = false;      // it was reached, and has parked the call
    bool came_back = false;  // it was reached again after an outage
    while (true) {
      Response response;
      const absl::Time begin = clock_.Now();
      grpc::Status status = Attempt(
          [&](grpc::ClientContext* context) {
            // After an outage the channel reconnects only while a call waits for the connection.
            context->set_wait_for_ready(!away.ok());
            return (stub_.get()->*method)(context, request, &response);
          },
          (parks ? deadline : std::min(deadline, gone)) - begin);
      if (status.ok()) return response;
      const absl::Time now = clock_.Now();
      // A wait-for-ready attempt starts only with a connection, so "unavailable" means that the
      // daemon was reached and went away again.
      came_back |= !away.ok() && status.error_code() == grpc::StatusCode::UNAVAILABLE;
      if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && now < deadline && !parks &&
          connected()) {
        parks = true;
        continue;
      }
      if (!away.ok() && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
          !connected()) {
        status = away;  // its message is more specific
      }
      // It was reached for a while: a new outage starts.
      if (now - begin >= away_patience_) gone = absl::InfiniteFuture();
      gone = std::min(gone, now + away_patience_);
      parks = false;
      const bool unavailable = status.error_code() == grpc::StatusCode::UNAVAILABLE;
      if (unavailable && came_back && now >= deadline && now < gone) return NoAnswer(name, timeout);
      if (!unavailable || now >= std::min(deadline, gone)) return Explain(name, status, timeout);
      away = std::move(status);
      if (!Pause(std::min({deadline, gone, now + back_off.Next(random)}))) return Cancelled();
    }
  }

  bool connected() const {
    return channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
  }

  // Makes one attempt, which CancelAll can cancel.
  template <typename Invoke>
  grpc::Status Attempt(Invoke invoke, absl::Duration timeout) {
    grpc::ClientContext context;
    if (timeout != absl::InfiniteDuration()) {
      context.set_deadline(gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
    }
    {
      absl::MutexLock lock(&mu_);
      if (cancelled_) return transport::ToGrpcStatus(Cancelled());
      in_flight_.insert(&context);
    }
    grpc::Status status = invoke(&context);
    absl::MutexLock lock(&mu_);
    in_flight_.erase(&context);
    if (cancelled_ && !status.ok()) return transport::ToGrpcStatus(Cancelled());
    return transport::WithoutServersEnd(status);
  }

  // Waits until a time or until CancelAll. Returns false if it was cancelled.
  bool Pause(absl::Time until) {
    absl::MutexLock lock(&mu_);
    return !clock_.AwaitWithDeadline(mu_, absl::Condition(&cancelled_), until);
  }

  absl::Status Explain(absl::string_view name, const grpc::Status& status, absl::Duration timeout) {
    const std::string daemon = absl::StrCat("the rendezvous daemon at ", address_);
    // A call that never got a connection may end with either code.
    const bool unreachable =
        status.error_code() == grpc::StatusCode::UNAVAILABLE ||
        (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && !connected());
    if (unreachable) {
      return absl::UnavailableError(absl::StrCat(
          name, ": ", daemon, " was not reached within ",
          text::DurationText(std::min(timeout, away_patience_)), ": ", status.error_message()));
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return NoAnswer(name, timeout);
    return transport::FromGrpcStatus(status);
  }

  absl::Status NoAnswer(absl::string_view name, absl::Duration timeout) const {
    return absl::DeadlineExceededError(absl::StrCat(name, ": the rendezvous daemon at ", address_,
                                                    " had no answer within ",
                                                    text::DurationText(timeout)));
  }

  static absl::Status Cancelled() {
    return absl::CancelledError("the calls to the rendezvous daemon were cancelled");
  }

  const std::string address_;
  const absl::Duration away_patience_;
  Clock& clock_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Stub> stub_;
  absl::Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::set<grpc::ClientContext*> in_flight_ ABSL_GUARDED_BY(mu_);
};

// The channel that all live clients of a factory share; it is closed with the last of them.
// Thread-safe.
class SharedChannel {
 public:
  SharedChannel(const std::string& address, const security::PeerCredentials& credentials,
                const transport::Patience& patience)
      : address_(address), credentials_(credentials), patience_(patience) {}

  std::shared_ptr<grpc::Channel> Get() {
    absl::MutexLock lock(&mu_);
    std::shared_ptr<grpc::Channel> channel = channel_.lock();
    if (channel == nullptr) {
      channel_ = channel = transport::NewChannel(address_, credentials_, patience_);
    }
    return channel;
  }

  const std::string& address() const { return address_; }

 private:
  const std::string address_;
  const security::PeerCredentials credentials_;
  const transport::Patience patience_;
  absl::Mutex mu_;
  std::weak_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<RendezvousClient> NewGrpcRendezvousClient(
    const std::string& address, const security::PeerCredentials& credentials) {
  return GrpcRendezvousClients(address, credentials)();
}

std::function<std::unique_ptr<RendezvousClient>()> GrpcRendezvousClients(
    const std::string& address, const security::PeerCredentials& credentials,
    const Patience& patience) {
  return [away = patience.away,
          channel = std::make_shared<SharedChannel>(address, credentials, patience.process)] {
    return std::make_unique<GrpcRendezvousClient>(channel->address(), channel->Get(), away,
                                                  Clock::Real());
  };
}

}  // namespace hvd::rendezvous::client
