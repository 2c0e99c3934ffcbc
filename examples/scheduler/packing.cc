#include "examples/scheduler/packing.h"

#include <cstddef>

std::vector<int> Pack(int slots, const std::vector<Demand>& jobs) {
  std::vector<int> shares(jobs.size(), 0);
  int left = slots;
  const auto admit = [&](bool running) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].running != running || jobs[i].min > left) continue;
      shares[i] = jobs[i].min;
      left -= jobs[i].min;
    }
  };
  admit(true);
  admit(false);
  // Round robin: one slot for each job that can use more, until a round gives out none.
  for (bool given = true; given && left > 0;) {
    given = false;
    for (size_t i = 0; i < jobs.size() && left > 0; ++i) {
      if (shares[i] == 0 || shares[i] >= jobs[i].max) continue;
      ++shares[i];
      --left;
      given = true;
    }
  }
  return shares;
}
