// The allocation of a cluster's slots to jobs.
#ifndef EXAMPLES_SCHEDULER_PACKING_H_
#define EXAMPLES_SCHEDULER_PACKING_H_

#include <vector>

// A job that has not ended.
struct Demand {
  int min = 1;
  int max = 1;
  bool running = false;  // it has been given slots before
};

// The number of slots of each job, in the order of `jobs`, which is their priority: 0, or from min
// to max. Pure.
// - A running job always keeps its min.
// - Other jobs start in their order as long as all mins fit. A job that does not fit waits, and
//   does not hold up smaller jobs behind it.
// - The remaining slots are given out one by one, in turn, to the jobs that can use them.
std::vector<int> Pack(int slots, const std::vector<Demand>& jobs);

#endif  // EXAMPLES_SCHEDULER_PACKING_H_
