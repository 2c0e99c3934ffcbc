// Fuzz target: the snapshot of a journal, and the events after it.
#include <utility>
#include <vector>

#include "proto/journal.pb.h"
#include "rendezvous/journal/event_codec.h"
#include "rendezvous/server/job_recovery.h"
#include "tests/support/fuzzing.h"

namespace hvd::rendezvous::server {
namespace {

class ReadJournal : public journal::Journal {
 public:
  explicit ReadJournal(InputParts& parts) {
    if (parts.Byte() % 2 == 0) snapshot_ = Snapshot{std::string(parts.Text()), started()};
    while (!parts.empty()) {
      const absl::string_view bytes = parts.Text();
      pb::journal::Event message;
      if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) continue;
      auto event = journal::FromMessage(message);
      if (!event.has_value()) continue;
      const absl::Time time = journal::TimeFromNanoseconds(message.time_ns());
      events_.emplace_back(*std::move(event), time);
    }
  }

  absl::Time started() const override { return absl::FromUnixSeconds(1600000000); }
  std::optional<Snapshot> snapshot() const override { return snapshot_; }
  absl::Status Replay(const Visit& visit) override {
    for (const auto& [event, time] : events_) visit(event, time);
    return absl::OkStatus();
  }
  void Append(const membership::Event&, absl::Time) override {}
  absl::Status Sync() override { return absl::OkStatus(); }
  bool WantsSnapshot() const override { return false; }
  absl::Status Compact(const Snapshot&) override { return absl::OkStatus(); }

 private:
  std::optional<Snapshot> snapshot_;
  std::vector<std::pair<membership::Event, absl::Time>> events_;
};

void Check(InputParts& parts) {
  policy::JobSpec spec;
  spec.min_workers = 1;
  spec.max_workers = 3;
  spec.start_workers = 3;
  spec.elastic.emplace();
  ReadJournal journal(parts);
  auto recovered = Recover(spec, journal);
  if (!recovered.ok()) return RequireOneLine(recovered.status());
  const std::string broken = recovered->machine->Check();
  Require(broken.empty(), broken);
  recovered->machine->Apply(membership::Restarted{}, recovered->newest);
  recovered->machine->Describe();
  Require(!SaveJob(*recovered->machine, recovered->history).empty(), "it can be saved");
}

}  // namespace
}  // namespace hvd::rendezvous::server

// Whether there is a snapshot, the snapshot, and events, each after its length.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::InputParts parts(data, size);
  hvd::rendezvous::server::Check(parts);
  return 0;
}
