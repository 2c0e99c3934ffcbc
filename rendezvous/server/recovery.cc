#include "rendezvous/server/recovery.h"

#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "rendezvous/membership/archive.h"

namespace hvd {
namespace {

absl::Status LoadJob(const JobSpec& spec, const Journal::Snapshot& saved, Recovered* job) {
  std::string machine;
  ArchiveReader reader(saved.state, saved.layout);
  reader(machine, job->history);
  if (!reader.complete()) return absl::DataLossError("the journal's snapshot is damaged");
  ASSIGN_OR_RETURN(job->machine, Membership::Load(spec, machine, saved.layout));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Recovered> Recover(const JobSpec& spec, Journal& journal) {
  Recovered result;
  result.newest = journal.started();
  if (const std::optional<Journal::Snapshot> snapshot = journal.snapshot()) {
    RETURN_IF_ERROR(LoadJob(spec, *snapshot, &result));
    result.newest = snapshot->time;
    result.had_events = true;
  } else {
    result.machine = std::make_unique<Membership>(spec, journal.started());
  }
  RETURN_IF_ERROR(journal.Replay([&](const Event& event, absl::Time time) {
    result.had_events = true;
    result.newest = time;
    for (const Effect& effect : result.machine->Apply(event, time)) {
      const auto* notice = std::get_if<Notice>(&effect);
      if (notice != nullptr) result.history.Observe(*notice, time);
    }
  }));
  result.verdict = result.machine->Ended();
  return result;
}

std::string SaveJob(const Membership& machine, const JobHistory& history) {
  std::string machine_bytes = machine.Save();
  JobHistory copy = history;
  ArchiveWriter writer;
  writer(machine_bytes, copy);
  return writer.Take();
}

}  // namespace hvd
