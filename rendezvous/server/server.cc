#include "rendezvous/server/server.h"

#include <mutex>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/status_macros.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "rendezvous/security/tls_credentials.h"
#include "rendezvous/server/agent_service.h"
#include "rendezvous/server/driver.h"
#include "rendezvous/server/listen_address.h"
#include "rendezvous/server/rendezvous_service.h"
#include "rendezvous/transport/connection.h"

namespace hvd {
namespace {

// For replies and last commands to go out when the server is destroyed; what has not gone by then
// is cancelled.
constexpr int kShutdownMs = 2000;

absl::Status CheckOptions(const ServerOptions& options) {
  const PeerCredentials& credentials = options.credentials;
  if (options.job_id.empty()) return absl::InvalidArgumentError("the job has no id");
  if (credentials.token.empty() || credentials.ca_certificate.empty() ||
      credentials.certificate.empty() || credentials.private_key.empty()) {
    return absl::InvalidArgumentError("the server's credentials are incomplete");
  }
  if (options.listen.empty()) return absl::InvalidArgumentError("no address to listen on");
  if (options.job.min_workers < 1 || options.job.max_workers < options.job.min_workers) {
    return absl::InvalidArgumentError(absl::StrCat("a job can't have from ",
                                                   options.job.min_workers, " to ",
                                                   options.job.max_workers, " workers"));
  }
  return absl::OkStatus();
}

class ServerImpl final : public Server {
 public:
  ServerImpl(ServerOptions options, Clock& clock)
      : options_(std::move(options)),
        machine_(options_.job, clock.Now()),
        rendezvous_(
            {options_.job_id, RandomBytes(32), [this](Event event) { Post(std::move(event)); },
             [this](std::function<void(const Membership::View&)> use) { View(std::move(use)); }}),
        agents_(options_.job_id, [this](Event event) { Post(std::move(event)); }),
        driver_(
            {[this](const Event& event, absl::Time now) { return machine_.Apply(event, now); },
             [this] { return machine_.NextDeadline(); }},
            [this](Effect effect) { Carry(std::move(effect)); }, clock) {}

  ~ServerImpl() override {
    // First the machine: the ends of calls and streams below are this server's doing and no news of
    // the job.
    driver_.Stop();
    const absl::Status status = absl::FailedPreconditionError("the rendezvous daemon is shut down");
    rendezvous_.Close(status);
    agents_.Close(over_ ? absl::OkStatus() : status);
    if (grpc_ == nullptr) return;
    grpc_->Shutdown(gpr_time_from_millis(kShutdownMs, GPR_TIMESPAN));
    grpc_->Wait();
  }

  // Errors as Server::Start.
  absl::Status Listen() {
    // gRPC's switch for its own health service; it is the same for all servers of a process.
    static std::once_flag health;
    std::call_once(health, [] { grpc::EnableDefaultHealthCheckService(true); });
    std::vector<ListenAddress> listen;
    for (const std::string& text : options_.listen) {
      ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(text));
      // gRPC would say only that it could not start, and log the reason.
      RETURN_IF_ERROR(TryToListen(address));
      listen.push_back(std::move(address));
    }
    grpc::ServerBuilder builder;
    ConfigureConnections(builder);
    std::vector<int> ports(listen.size(), 0);
    const auto credentials = MakeServerCredentials(options_.credentials);
    for (size_t i = 0; i < listen.size(); ++i) {
      builder.AddListeningPort(listen[i].WithPort(listen[i].port), credentials, &ports[i]);
    }
    builder.RegisterService(&rendezvous_);
    builder.RegisterService(&agents_);
    grpc_ = builder.BuildAndStart();
    if (grpc_ == nullptr) {
      return absl::InvalidArgumentError(
          "can't serve with these credentials, or an address is listed twice");
    }
    for (size_t i = 0; i < listen.size(); ++i) addresses_.push_back(listen[i].WithPort(ports[i]));
    return absl::OkStatus();
  }

  std::vector<std::string> addresses() const override { return addresses_; }

  void RequestStop(std::string reason, int exit_code, absl::Duration grace) override {
    Post(StopRequested{std::move(reason), exit_code, grace});
  }

  void ReportHosts(std::vector<HostSlots> hosts) override {
    Post(HostsDiscovered{std::move(hosts)});
  }

  void Drain(std::string host, absl::Duration grace, std::string reason) override {
    Post(HostDraining{std::move(host), grace, std::move(reason)});
  }

  Membership::View Describe() override {
    Membership::View result;
    absl::Notification done;
    View([&](const Membership::View& view) {
      result = view;
      done.Notify();
    });
    done.WaitForNotification();  // the driver's thread lives as long as this object
    return result;
  }

 private:
  void Post(Event event) { driver_.Post(std::move(event)); }

  void View(std::function<void(const Membership::View&)> use) {
    driver_.Run([this, use = std::move(use)] { use(machine_.Describe()); });
  }

  void Carry(Effect effect) {
    std::visit([this](auto& each) { CarryOut(each); }, effect);
  }
  void CarryOut(const StartWorkerEffect& effect) { agents_.Handle(effect); }
  void CarryOut(const StopWorkersEffect& effect) { agents_.Handle(effect); }
  void CarryOut(const EndJobEffect& effect) { agents_.Handle(effect); }
  void CarryOut(const ReplyWorld& effect) { rendezvous_.Handle(effect); }
  void CarryOut(const ReplyDeferred& effect) { rendezvous_.Handle(effect); }
  void CarryOut(const ReplyReleased& effect) { rendezvous_.Handle(effect); }
  void CarryOut(const ReplyWatch& effect) { rendezvous_.Handle(effect); }
  void CarryOut(ReplyExchange& effect) { rendezvous_.Handle(std::move(effect)); }
  void CarryOut(const ReplyStatus& effect) { rendezvous_.Handle(effect); }
  void CarryOut(const Notice& notice) {
    if (options_.on_notice) options_.on_notice(notice);
  }
  void CarryOut(const JobFinished& effect) {
    over_ = true;
    agents_.JobOver();
    if (options_.on_finished) options_.on_finished(effect.verdict);
  }

  const ServerOptions options_;
  Membership machine_;  // the driver's thread's
  RendezvousService rendezvous_;
  AgentService agents_;
  bool over_ = false;  // the driver's thread's
  std::vector<std::string> addresses_;
  std::unique_ptr<grpc::Server> grpc_;
  Driver driver_;  // last: its thread uses the others
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, Clock& clock) {
  RETURN_IF_ERROR(CheckOptions(options));
  auto server = std::make_unique<ServerImpl>(std::move(options), clock);
  RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace hvd
