// Which job gets how many slots.
#ifndef EXAMPLES_SCHEDULER_PACKING_H_
#define EXAMPLES_SCHEDULER_PACKING_H_

#include <vector>

// A job that has not ended.
struct Demand {
  int min = 1;
  int max = 1;
  bool running = false;  // it has been given slots before
};

// How many slots each job is to have, in the jobs' order, which is their priority: 0, or from min
// to max. Pure.
//  - A job that runs keeps its min, whoever comes.
//  - Other jobs start in their order as long as all mins fit; one that does not fit waits, and does
//    not hold up smaller ones behind it.
//  - What is left over goes round: one more slot for each job that can use it, and again.
std::vector<int> Pack(int slots, const std::vector<Demand>& jobs);

#endif  // EXAMPLES_SCHEDULER_PACKING_H_
