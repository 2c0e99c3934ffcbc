// The allocation policy of the example scheduler: divides a cluster's slots among jobs.
#ifndef EXAMPLES_SCHEDULER_PACKING_H_
#define EXAMPLES_SCHEDULER_PACKING_H_

#include <vector>

// A job that has not ended.
struct Demand {
  int min = 1;
  int max = 1;
  bool running = false;  // it has had slots before
};

// Returns the number of slots for each job: 0, or between min and max. `jobs` is in the order of
// priority. Pure.
//   - A running job always keeps its min.
//   - Other jobs start in order of priority while their mins fit. A job that does not fit waits,
//     without delaying smaller jobs after it.
//   - The remaining slots are dealt out one at a time, in turn, to the jobs that can use them.
std::vector<int> Pack(int slots, const std::vector<Demand>& jobs);

#endif  // EXAMPLES_SCHEDULER_PACKING_H_
