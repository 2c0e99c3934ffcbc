#include "rendezvous/server/recovery.h"

#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "rendezvous/membership/archive.h"

namespace hvd::rendezvous::server {
namespace {

absl::Status LoadJob(const policy::JobSpec& spec, const journal::Journal::Snapshot& saved,
                     Recovered* job) {
  std::string machine;
  membership::ArchiveReader reader(saved.state, saved.layout);
  reader(machine, job->history);
  if (!reader.complete()) return absl::DataLossError("the journal's snapshot is damaged");
  ASSIGN_OR_RETURN(job->machine, membership::Membership::Load(spec, machine, saved.layout));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Recovered> Recover(const policy::JobSpec& spec, journal::Journal& journal) {
  Recovered result;
  result.newest = journal.started();
  if (const std::optional<journal::Journal::Snapshot> snapshot = journal.snapshot()) {
    RETURN_IF_ERROR(LoadJob(spec, *snapshot, &result));
    result.newest = snapshot->time;
    result.had_events = true;
  } else {
    result.machine = std::make_unique<membership::Membership>(spec, journal.started());
  }
  RETURN_IF_ERROR(journal.Replay([&](const membership::Event& event, absl::Time time) {
    result.had_events = true;
    result.newest = time;
    for (const membership::Effect& effect : result.machine->Apply(event, time)) {
      const auto* notice = std::get_if<membership::Notice>(&effect);
      if (notice != nullptr) result.history.Observe(*notice, time);
    }
  }));
  result.verdict = result.machine->Ended();
  return result;
}

std::string SaveJob(const membership::Membership& machine, const reporting::JobHistory& history) {
  std::string machine_bytes = machine.Save();
  reporting::JobHistory copy = history;
  membership::ArchiveWriter writer;
  writer(machine_bytes, copy);
  return writer.Take();
}

}  // namespace hvd::rendezvous::server
