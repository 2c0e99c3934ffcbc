// A scheduler that runs elastic jobs on the slots of one machine: a small model of a cluster
// scheduler that embeds rendezvous/server/server.h.
#ifndef EXAMPLES_SCHEDULER_SCHEDULER_H_
#define EXAMPLES_SCHEDULER_SCHEDULER_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "base/os/process.h"
#include "rendezvous/server/server.h"

struct JobRequest {
  std::string name;
  int min = 1;
  int max = 1;
  std::string command;  // run by sh -c
};

// Used by the thread that calls Run; the callbacks of jobs are posted to its loop. To a job each
// slot is a separate host, so that slots can be added and removed one at a time.
class Scheduler {
 public:
  Scheduler(hvd::EventLoop& loop, hvd::rendezvous::server::RendezvousServer& server, int slots);

  // Errors: those of RendezvousServer::AddJob.
  absl::Status Add(const JobRequest& request);

  // Runs all jobs to their ends. Returns the exit code of the first job that failed, else 0.
  int Run();

  // Ends all jobs; the second call ends them at once.
  void Stop();

 private:
  struct Worker {
    std::string slot;
    hvd::os::Process process;
  };
  struct Job {
    JobRequest request;
    bool running = false;
    bool ending = false;  // it gives back slots without being asked, because it is about to end
    bool ended = false;
    std::set<std::string> slots;    // the slots that it holds, including those that it is leaving
    std::set<std::string> offered;  // the slots that it may use
    std::map<hvd::WorkerId, Worker> workers;
    std::unique_ptr<hvd::rendezvous::server::ServedJob> served;
  };

  void Decide();
  void Resize(Job& job, int share);
  void StartWorker(Job& job, const hvd::rendezvous::server::WorkerStart& start);
  void StopWorker(Job& job, hvd::WorkerId worker, absl::Duration grace);
  void OnWorkerExit(Job& job, hvd::WorkerId worker);
  void OnSlotFree(Job& job, const std::string& slot);
  void OnFinished(Job& job, const hvd::rendezvous::membership::Verdict& verdict);

  hvd::EventLoop& loop_;
  hvd::rendezvous::server::RendezvousServer& server_;
  const int slots_;
  std::set<std::string> free_;
  std::vector<std::unique_ptr<Job>> jobs_;  // by priority
  bool stopping_ = false;
  int exit_code_ = 0;
};

#endif  // EXAMPLES_SCHEDULER_SCHEDULER_H_
