// Fuzz target: a job whose agents and workers send anything. What passes the daemon's checks must
// keep the invariants of the membership, also after it was saved and loaded.
#include <memory>
#include <utility>

#include "base/version.h"
#include "proto/rendezvous.pb.h"
#include "proto/snapshot.pb.h"
#include "rendezvous/journal/agent_events.h"
#include "rendezvous/journal/event_bounds.h"
#include "rendezvous/journal/event_codec.h"
#include "rendezvous/journal/request_event.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/transport/request_checks.h"
#include "tests/support/fuzzing.h"

namespace hvd::rendezvous::journal {
namespace {

constexpr int kMostEvents = 64;

policy::JobSpec SpecOf(uint8_t choice) {
  policy::JobSpec spec;
  spec.min_workers = 1 + choice % 2;
  spec.max_workers = spec.min_workers + (choice / 2) % 3;
  spec.start_workers = spec.max_workers;
  if (spec.max_workers > spec.min_workers || choice & 8) spec.elastic.emplace();
  if (choice & 16) spec.expected_hosts = {{"a", 1}, {"b", 1}};
  return spec;
}

class Job {
 public:
  explicit Job(const policy::JobSpec& spec)
      : spec_(spec), membership_(std::make_unique<membership::Membership>(spec_, now_)) {}

  // Reads a message and handles it as the daemon's services do.
  void Next(InputParts& parts) {
    const uint8_t kind = parts.Byte();
    now_ += absl::Milliseconds(uint64_t{1} << (kind >> 4));
    switch (kind % 9) {
      case 0:
        return TakeHello(parts.Text());
      case 1:
        return TakeAgentMessage(parts.Text());
      case 2:
        return TakeRequest<pb::JoinWorldRequest, membership::JoinRequested>(parts.Text());
      case 3:
        return TakeRequest<pb::ExchangeRequest, membership::ExchangeRequested>(parts.Text());
      case 4:
        return TakeRequest<pb::ReportStallRequest, membership::StallReported>(parts.Text());
      case 5:
        return TakeWatch(parts.Text());
      case 6:
        return TakeEvent(parts.Text());
      case 7:
        return Apply(membership::HostLost{std::string(1, 'a' + parts.Byte() % 3),
                                          Incarnation(parts.Byte()), "lost"});
      default:
        return LoadAnew();
    }
  }

 private:
  template <typename Message>
  static bool Parse(absl::string_view bytes, Message& message) {
    return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  }

  void TakeHello(absl::string_view bytes) {
    pb::AgentHello hello;
    if (!Parse(bytes, hello)) return;
    if (hello.version().empty()) hello.set_version(kVersion);
    const absl::Status fits = CheckHello(hello);
    if (!fits.ok()) return RequireOneLine(fits);
    Apply(EventOf(hello));
  }

  void TakeAgentMessage(absl::string_view bytes) {
    pb::AgentMessage message;
    if (!Parse(bytes, message)) return;
    const absl::Status fits = CheckNumbers(message);
    if (!fits.ok()) return RequireOneLine(fits);
    WorkerOf(message);
    if (auto event = EventOf("a", message)) Apply(*std::move(event));
  }

  template <typename Request, typename Event>
  void TakeRequest(absl::string_view bytes) {
    Request request;
    if (!Parse(bytes, request)) return;
    const absl::Status fits = transport::Check(request);
    if (!fits.ok()) return RequireOneLine(fits);
    Apply(ToEvent<Event>(NewCall(), request));
  }

  void TakeWatch(absl::string_view bytes) {
    pb::WatchEpochRequest request;
    if (Parse(bytes, request)) Apply(ToEvent<membership::WatchRequested>(NewCall(), request));
  }

  // Any event of the kinds that have no request of their own.
  void TakeEvent(absl::string_view bytes) {
    pb::journal::Event message;
    if (!Parse(bytes, message)) return;
    switch (message.kind_case()) {
      case pb::journal::Event::kReported:
        message.mutable_reported()->set_call(NewCall().value());
        break;
      case pb::journal::Event::kProgressReported:
        message.mutable_progress_reported()->set_call(NewCall().value());
        break;
      case pb::journal::Event::kCallCancelled:
      case pb::journal::Event::kRestarted:
      case pb::journal::Event::kTick:
      case pb::journal::Event::kHostsDiscovered:
        break;
      default:
        return;
    }
    if (auto event = FromMessage(message)) Apply(*std::move(event));
  }

  void Apply(membership::Event event) {
    const absl::Status recordable = Bound(event);
    if (!recordable.ok()) return RequireOneLine(recordable);
    membership_->Apply(event, now_);
    const std::string broken = membership_->Check();
    Require(broken.empty(), broken);
    RequireOneLine(membership_->Explain());
    membership_->Describe();
  }

  void LoadAnew() {
    const auto saved = membership_->Save();
    auto loaded = membership::Membership::Load(spec_, saved);
    Require(loaded.ok(), loaded.status().message());
    Require((*loaded)->Save().SerializeAsString() == saved.SerializeAsString(),
            "what was loaded is what was saved");
    membership_ = *std::move(loaded);
  }

  membership::CallId NewCall() { return membership::CallId(++calls_); }

  const policy::JobSpec spec_;
  absl::Time now_ = absl::FromUnixSeconds(1600000000);
  std::unique_ptr<membership::Membership> membership_;
  uint64_t calls_ = 0;
};

}  // namespace
}  // namespace hvd::rendezvous::journal

// The job's kind; then messages, each after its kind and its length.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::InputParts parts(data, size);
  hvd::rendezvous::journal::Job job(hvd::rendezvous::journal::SpecOf(parts.Byte()));
  for (int i = 0; i < hvd::rendezvous::journal::kMostEvents && !parts.empty(); ++i) job.Next(parts);
  return 0;
}
