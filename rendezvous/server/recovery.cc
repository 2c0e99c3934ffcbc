#include "rendezvous/server/recovery.h"

#include <variant>

#include "base/status_macros.h"

namespace hvd {

absl::StatusOr<Recovered> Recover(const JobSpec& spec, Journal& journal,
                                  const std::function<void(const Notice&, absl::Time)>& on_notice) {
  Recovered result;
  result.newest = journal.started();
  result.machine = std::make_unique<Membership>(spec, journal.started());
  RETURN_IF_ERROR(journal.Replay([&](const Event& event, absl::Time time) {
    result.had_events = true;
    result.newest = time;
    for (const Effect& effect : result.machine->Apply(event, time)) {
      if (const auto* finished = std::get_if<JobFinished>(&effect)) {
        result.verdict = finished->verdict;
      } else if (const auto* notice = std::get_if<Notice>(&effect); notice && on_notice) {
        on_notice(*notice, time);
      }
    }
  }));
  return result;
}

}  // namespace hvd
