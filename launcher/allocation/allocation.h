// A scheduler's allocation: the hosts that it has assigned to the job in which this process runs.
#ifndef LAUNCHER_ALLOCATION_ALLOCATION_H_
#define LAUNCHER_ALLOCATION_ALLOCATION_H_

#include <string>
#include <vector>

namespace hvd::launcher::allocation {

struct AllocatedHost {
  std::string name;
  int slots = 0;  // at least 1
  int gpus = 0;   // GPUs of the job on this host; 0: none, or not known
};

struct Allocation {
  std::string job;       // in messages: "Slurm's job 17"
  std::string source;    // in messages, the origin of the list: "PBS_NODEFILE (/var/nodes)"
  std::string slot;      // in messages, the unit that one process gets: "GPU"
  std::string launcher;  // the scheduler's command that reaches its hosts: "srun"
  std::vector<AllocatedHost> hosts;
};

}  // namespace hvd::launcher::allocation

#endif  // LAUNCHER_ALLOCATION_ALLOCATION_H_
