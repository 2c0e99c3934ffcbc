// A rehearsal of a job: has the faults of a campaign done, and reports what came of them.
#ifndef LAUNCHER_FAULTS_JOB_REHEARSAL_H_
#define LAUNCHER_FAULTS_JOB_REHEARSAL_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "launcher/plan/plan.h"
#include "rehearsal/campaign_run.h"
#include "rendezvous/membership/membership.h"
#include "rendezvous/policy/job_spec.h"
#include "rendezvous/server/server.h"

namespace hvd::launcher::faults {

// Looks at the job's state several times a second, which rehearsal::CampaignRun judges, and sends
// its orders to the agents. Not thread-safe. All referenced objects must outlive it, but for the
// server, which may end before Finish.
class JobRehearsal {
 public:
  static constexpr absl::Duration kPause = absl::Milliseconds(50);  // between two looks
  // The exit code of a job that failed, or of faults that were not as promised.
  static constexpr int kNotAsPromised = 70;

  using Say = std::function<void(const std::string& line)>;

  JobRehearsal(const plan::RehearsalPlan& plan, const rendezvous::policy::ElasticSpec& spec,
               rendezvous::server::Server& server, Clock& clock, Say say);

  void Take(const rendezvous::membership::Notice& notice, absl::Time when);
  // An agent's answer to an order; see CampaignRun::Answer.
  void Answer(uint64_t order, const std::string& problem, absl::Time when);

  // When Look must be called next; InfiniteFuture: no more.
  absl::Time NextDue() const;
  void Look();

  struct End {
    std::string table;
    std::string json;
    int exit_code = 0;
  };
  // Judges what is left, with the job's last state and exit code. `has_reason`: somebody has
  // stopped it, or it could not start, so that its exit code remains.
  End Finish(const rendezvous::membership::Membership::View& view, int exit_code, bool has_reason);

 private:
  void Send(const rehearsal::Order& order);

  rendezvous::server::Server& server_;
  Clock& clock_;
  const Say say_;
  const uint64_t seed_;
  rehearsal::CampaignRun run_;
  absl::Time next_look_;
};

}  // namespace hvd::launcher::faults

#endif  // LAUNCHER_FAULTS_JOB_REHEARSAL_H_
