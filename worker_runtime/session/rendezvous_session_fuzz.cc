// Fuzz target: worlds, as a daemon tells them.
#include <memory>
#include <utility>
#include <variant>

#include "tests/support/fuzzing.h"
#include "worker_runtime/session/rendezvous_session.h"

namespace hvd::worker_runtime::session {
namespace {

// A daemon that answers with these bytes, as far as they are messages.
class Client : public rendezvous::client::RendezvousClient {
 public:
  explicit Client(InputParts parts) : join_(parts.Text()), members_(parts.Rest()) {}

  absl::StatusOr<pb::JoinWorldResponse> JoinWorld(const pb::JoinWorldRequest&,
                                                  absl::Duration) override {
    return Parse<pb::JoinWorldResponse>(join_);
  }
  absl::StatusOr<pb::GetMembersResponse> GetMembers(const pb::GetMembersRequest&,
                                                    absl::Duration) override {
    return Parse<pb::GetMembersResponse>(members_);
  }
  absl::StatusOr<pb::WatchEpochResponse> WatchEpoch(const pb::WatchEpochRequest&,
                                                    absl::Duration) override {
    return absl::CancelledError("");
  }
  absl::StatusOr<pb::ExchangeResponse> Exchange(const pb::ExchangeRequest&,
                                                absl::Duration) override {
    return Parse<pb::ExchangeResponse>(members_);
  }
  absl::StatusOr<pb::ReportResponse> Report(const pb::ReportRequest&, absl::Duration) override {
    return pb::ReportResponse();
  }
  absl::StatusOr<pb::ReportStallResponse> ReportStall(const pb::ReportStallRequest&,
                                                      absl::Duration) override {
    return pb::ReportStallResponse();
  }
  absl::StatusOr<pb::GetStatusResponse> GetStatus(absl::Duration) override {
    return pb::GetStatusResponse();
  }
  void CancelAll() override {}

 private:
  template <typename Message>
  static absl::StatusOr<Message> Parse(absl::string_view bytes) {
    Message message;
    if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
    return absl::FailedPreconditionError("no message");
  }

  const absl::string_view join_;
  const absl::string_view members_;
};

void CheckWorld(const WorkerWorld& world) {
  Require(world.own.place.rank >= 0 && world.own.place.rank < world.size(), "a rank of the world");
  Require(world.own.worker == WorkerId(1), "it is this worker's");
  Require(world.root.place.rank == 0, "the root has rank 0");
}

void Check(InputParts parts) {
  WorkerStanding standing;
  standing.id = WorkerId(1);
  standing.advertise_address = "10.0.0.1";
  Session session(standing, Incarnation(1), [parts] { return std::make_unique<Client>(parts); });
  pb::JoinWorldRequest request;
  request.set_may_defer(true);
  const auto joined = session.JoinNextWorld(request, absl::ZeroDuration());
  if (!joined.ok()) return RequireOneLine(joined.status());
  if (const auto* world = std::get_if<WorkerWorld>(&*joined)) CheckWorld(*world);
  const auto selected =
      session.NewKeyExchange(Epoch(1))->Gather("key", "value", {0, 2}, absl::ZeroDuration());
  Require(!selected.ok() || selected->values.size() == 2, "a value for each rank asked for");
}

}  // namespace
}  // namespace hvd::worker_runtime::session

// The answer to JoinWorld after its length, and that to all other calls.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::worker_runtime::session::Check(hvd::InputParts(data, size));
  return 0;
}
