// The Prometheus metrics of jobs.
#ifndef RENDEZVOUS_REPORTING_METRICS_H_
#define RENDEZVOUS_REPORTING_METRICS_H_

#include <string>
#include <vector>

#include "rendezvous/reporting/job_history.h"

namespace hvd::rendezvous::reporting {

inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// The text format, version 0.0.4. Pure. Every sample has a label `job`, the job's id:
//   horovod_world                         the newest world's number; 0: there was none
//   horovod_world_size                    ranks in it
//   horovod_job_state{state}              1 for the state the job is in (forming, running, ...)
//   horovod_waiting                       1 while no world is up: workers are awaited
//   horovod_min_workers, horovod_max_workers (elastic jobs)
//   horovod_workers{state}                worker processes, by state
//   horovod_hosts{attached}               hosts, by whether their agent is there
//   horovod_slots                         of attached hosts
//   horovod_worlds_formed_total
//   horovod_seconds_since_world           since the newest world formed; only if there was one
//   horovod_seconds_without_world_total   since the first world (elastic jobs)
//   horovod_commit                        the newest commit's number; 0: there is none
//   horovod_seconds_since_commit          since that one; only if it is known
//   horovod_checkpoint                    the number of the newest one's commit; 0: there is none
//   horovod_seconds_since_checkpoint      since that commit; only if it is known
//   horovod_checkpoint_fails              1 while the last one could not be written
//   horovod_lost_steps_total, horovod_lost_seconds_total
//                                         work since the commits that failures went back to
//   horovod_failures_total                that counted against the budget
//   horovod_failures_left                 that would be forgiven now (elastic jobs)
//   horovod_events_total{kind}            by kind, as in the event log (event_log.h)
std::string RenderMetrics(const std::vector<JobReport>& jobs);

}  // namespace hvd::rendezvous::reporting

#endif  // RENDEZVOUS_REPORTING_METRICS_H_
