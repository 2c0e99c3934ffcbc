// The hosts that a scheduler has given to the job in which this process runs.
#ifndef LAUNCHER_ALLOCATION_ALLOCATION_H_
#define LAUNCHER_ALLOCATION_ALLOCATION_H_

#include <string>
#include <vector>

namespace hvd::launcher::allocation {

struct AllocatedHost {
  std::string name;
  int slots = 0;  // at least 1
  int gpus = 0;   // of the job's there; 0: none, or not known
};

struct Allocation {
  std::string job;       // in messages: "Slurm's job 17"
  std::string source;    // in messages, what lists the hosts: "PBS_NODEFILE (/var/nodes)"
  std::string slot;      // in messages, what a process is started for: "GPU"
  std::string launcher;  // the scheduler's command that reaches its hosts: "srun"
  std::vector<AllocatedHost> hosts;
};

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_ALLOCATION_H_
