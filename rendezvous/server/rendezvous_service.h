// The gRPC service for workers and administrators: translates requests to events, and effects to
// answers.
#ifndef RENDEZVOUS_SERVER_RENDEZVOUS_SERVICE_H_
#define RENDEZVOUS_SERVER_RENDEZVOUS_SERVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/settings/on_corruption.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/reporting/job_history.h"
#include "rendezvous/server/parked_calls.h"

namespace hvd::rendezvous::server {

// The service's configuration and dependencies. The functions may be called from any of gRPC's
// threads and must not block.
struct RendezvousServiceOptions {
  std::string secret_key;      // epochs' secrets are derived from this
  bool elastic = false;        // whether hosts may be drained
  absl::Duration drain_grace;  // of an elastic job
  bool encrypt_data = false;   // as in World
  settings::OnCorruption on_corruption = settings::OnCorruption::kOff;
  bool tells = false;                           // whether notices have a recipient
  std::function<void(membership::Event)> post;  // queues an event for the machine
  std::function<absl::Status()> check_room;     // OK, or why nothing may be posted for a caller
  // Passes the current report to its argument, asynchronously, on any thread.
  std::function<void(const std::function<void(const reporting::JobReport&)>&)> report;
  std::function<std::string()> command;  // of the workers; empty: unknown
  // The same with the newest world.
  std::function<void(const std::function<void(const membership::WorldPtr&)>&)> world;
};

// Translates between rendezvous.proto and events.h; Membership makes all decisions. Thread-safe.
// Must outlive the gRPC server it is registered with.
class RendezvousService final : public pb::Rendezvous::CallbackService {
 public:
  // A World with more members than this names only rank 0 and the caller.
  static constexpr size_t kMostMembersTold = 64;

  explicit RendezvousService(RendezvousServiceOptions options);

  grpc::ServerUnaryReactor* JoinWorld(grpc::CallbackServerContext* context,
                                      const pb::JoinWorldRequest* request,
                                      pb::JoinWorldResponse* response) override;
  grpc::ServerUnaryReactor* GetMembers(grpc::CallbackServerContext* context,
                                       const pb::GetMembersRequest* request,
                                       pb::GetMembersResponse* response) override;
  grpc::ServerUnaryReactor* WatchEpoch(grpc::CallbackServerContext* context,
                                       const pb::WatchEpochRequest* request,
                                       pb::WatchEpochResponse* response) override;
  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context,
                                     const pb::ExchangeRequest* request,
                                     pb::ExchangeResponse* response) override;
  grpc::ServerUnaryReactor* Report(grpc::CallbackServerContext* context,
                                   const pb::ReportRequest* request,
                                   pb::ReportResponse* response) override;
  grpc::ServerUnaryReactor* ReportStall(grpc::CallbackServerContext* context,
                                        const pb::ReportStallRequest* request,
                                        pb::ReportStallResponse* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const pb::GetStatusRequest* request,
                                      pb::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const pb::DrainRequest* request,
                                  pb::DrainResponse* response) override;
  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const pb::StopRequest* request,
                                 pb::StopResponse* response) override;

  // Carry out one effect. An effect for a call that has ended is ignored.
  void Handle(const membership::ReplyWorld& effect);
  void Handle(const membership::ReplyDeferred& effect);
  void Handle(const membership::ReplyReleased& effect);
  void Handle(const membership::ReplyWatch& effect);
  void Handle(const membership::ReplyExchange& effect);
  void Handle(const membership::ReplyStatus& effect);

  // Ends all parked calls, and every later one, with `status`.
  void Close(const absl::Status& status);

  // OK, or why a call must be refused: its sender has too much parked, or the job too much queued.
  // Thread-safe.
  template <typename Request>
  absl::Status CheckRoom(const grpc::CallbackServerContext& context, const Request& request) {
    absl::Status room = options_.check_room();
    return room.ok() ? calls_.CheckRoom(context, request) : room;
  }

  // Whether a call may still call into this object.
  bool busy() { return calls_.busy(); }

 private:
  template <typename Request>
  bool Accepts(const ParkedCall& call, const Request& request);
  // The event that ends the job.
  membership::StopRequested StopEvent(const pb::StopRequest& request) const;
  // OK, or why the host can't be drained.
  absl::Status CheckDrain(const std::string& host, const membership::Membership::View& view) const;

  const RendezvousServiceOptions options_;
  ParkedCalls calls_;

  // A cache: the values of the last completed round, and whether they are all equal.
  std::shared_ptr<const std::vector<std::string>> last_exchange_;
  bool last_all_equal_ = false;
};

}  // namespace hvd::rendezvous::server

#endif  // RENDEZVOUS_SERVER_RENDEZVOUS_SERVICE_H_
