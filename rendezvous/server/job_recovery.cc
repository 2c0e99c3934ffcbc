#include "rendezvous/server/job_recovery.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/snapshot.pb.h"
#include "rendezvous/membership/effect_fields.h"
#include "rendezvous/snapshot/fields.h"

namespace hvd::rendezvous::server {
namespace {

absl::Status Damaged(absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat("the journal's snapshot is damaged (", why,
                   "); put back a copy of the folder, or start the job anew, with another one: "
                   "training goes on from its checkpoint"));
}

absl::Status LoadJob(const policy::JobSpec& spec, const std::string& state, Recovered* job) {
  pb::journal::SavedJob saved;
  if (!saved.ParseFromString(state)) return Damaged("it can't be parsed");
  // The program increments these numbers later; an overflow would be undefined behaviour.
  if (!snapshot::HasNumbersInRange(saved)) return Damaged("a number is too large");
  snapshot::FieldReader reader(saved);
  reader("history", job->history);
  auto machine = membership::Membership::Load(spec, saved.membership());
  if (!machine.ok()) return Damaged(machine.status().message());
  job->machine = *std::move(machine);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Recovered> Recover(const policy::JobSpec& spec, journal::Journal& journal) {
  Recovered result;
  result.newest = journal.started();
  if (const std::optional<journal::Journal::Snapshot> snapshot = journal.snapshot()) {
    RETURN_IF_ERROR(LoadJob(spec, snapshot->state, &result));
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
  pb::journal::SavedJob saved;
  *saved.mutable_membership() = machine.Save();
  // The fields are declared once for both directions, so the writer takes them by non-const
  // reference.
  reporting::JobHistory copy = history;
  snapshot::FieldWriter writer(&saved);
  writer("history", copy);
  return saved.SerializeAsString();
}

}  // namespace hvd::rendezvous::server
