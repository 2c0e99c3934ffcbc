// A simulation of a job's membership machine, driven by the commands of a scenario file, which play
// agents, workers and time.
#ifndef TESTS_SIMULATION_CLUSTER_SIM_H_
#define TESTS_SIMULATION_CLUSTER_SIM_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rendezvous/membership/membership.h"
#include "tests/support/datadriven.h"

namespace hvd {

// Commands. WORKERS are worker ids, such as `2` or `1-4`. `inc=` is the incarnation, by default 100
// times the worker id; `agent=` is the agent's, by default the first letter of the host.
//   job hosts=a:2,b:2 [np=N] [start-timeout=] [settle=] [grace=] [reattach=]
//       A new job; np: by default the number of slots. It is elastic if min= or max= is given, with
//       [spares=] [elastic-timeout=] [rejoin=] [join-delay=] [drain-grace=] [failures=N]
//       [window=] [no-progress=N] [reset-limit=N] [cooldown=SHORTEST,LONGEST]
//   attach HOST... [slots=N] [machine=NAME] [agent=N] [known=WORKER,...] [copies=yes] [commit=]
//   kept HOST commit=
//   left HOST commit=
//       commit=: a number, or WORLD:NUMBER
//   lose HOST [reason=] [agent=N]
//   discover [HOST:SLOTS,...]
//   drain HOST [grace=] [reason=] [at-once]
//   restart
//   started WORKERS pid=N
//   dying WORKERS
//   exit WORKERS [code=] [signal=] [core] [oom] [start-error=] [tail=]
//   join WORKERS [last=EPOCH] [inc=] [defer] [commit=] [worked] [left-for=REASON] [by-peer] [anew]
//       [lost-steps=N] [lost=DURATION]
//   progress WORKERS epoch= commit= [age=] [inc=] [began=COMMIT] [checkpoint=COMMIT]
//       [checkpoint-age=] [failure=TEXT]
//   watch WORKERS epoch= [inc=] [knows]
//   exchange WORKERS epoch= key= [value=] [bytes=N] [inc=]
//       value: by default "from-WORKER"
//   finish WORKERS epoch= [inc=]
//   fail WORKERS epoch= [message=] [by-peer] [inc=] [commit=] [ends-job]
//   stall WORKER epoch= missing=RANKS [what=] [waited=] [give-up]
//   sampled WORKERS [doing=] [stack=A|B]
//   cancel CALL
//   stop [reason=] [code=] [grace=] [keeps-world] [at-commit]
//   advance DURATION
//       Ticks at each deadline on the way.
//   explain
//   deadline
//   status
// Each prints the effects, one a line. Calls are numbered from 1; a world that was printed already
// is not printed again.
class ClusterSim {
 public:
  std::string Run(Command& command);

 private:
  std::string NewJob(Command& command);
  std::string Outside(Command& command);
  std::string Hosts(Command& command);
  std::string Workers(Command& command);
  std::string Advance(Command& command);
  std::string Apply(const rendezvous::membership::Event& event);
  std::string Show(const rendezvous::membership::Effect& effect);
  rendezvous::membership::Event WorkerEvent(Command& command, int worker);
  rendezvous::membership::Event ProgressEvent(Command& command, rendezvous::membership::CallId call,
                                              rendezvous::membership::WorkerKey key);
  rendezvous::membership::Event CallEvent(Command& command, int worker);
  rendezvous::membership::Event ExitEvent(Command& command, int worker);
  rendezvous::membership::Event ReportEvent(Command& command,
                                            const rendezvous::membership::WorkerKey& key);

  absl::Time now_ = absl::UnixEpoch();
  std::unique_ptr<rendezvous::membership::Membership> machine_;
  std::map<std::string, int> slots_;
  std::map<rendezvous::membership::CallId, std::string>
      calls_;  // the command and the worker of each call
  std::string last_world_;
};

}  // namespace hvd

#endif  // TESTS_SIMULATION_CLUSTER_SIM_H_
