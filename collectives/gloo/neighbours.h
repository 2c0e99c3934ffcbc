// Whom a rank talks to in the algorithms of large groups. Pure.
//
// All are symmetric: a rank is among its neighbours' neighbours. All lie 2^k ranks away (modulo the
// group's size), so that what several algorithms need together are at most 2 log2(size) neighbours,
// rounded up.
#ifndef COLLECTIVES_GLOO_NEIGHBOURS_H_
#define COLLECTIVES_GLOO_NEIGHBOURS_H_

#include <vector>

namespace hvd::collectives::gloo {

// The next and the one before.
std::vector<int> RingNeighbours(int rank, int size);

// Those 1, 2, 4, ... ranks before and after: every rank is reached in log2(size) steps.
std::vector<int> StepNeighbours(int rank, int size);

// The binomial tree that hangs from `root`: its nodes have log2(size) children at most, and two on
// average.
struct Tree {
  int parent = -1;            // none: this is the root
  std::vector<int> children;  // who has the most below it first
  // How many ranks hang from this one, itself included: those from it on, modulo the size.
  int below = 1;

  std::vector<int> Neighbours() const;
};
Tree BinomialTree(int rank, int size, int root);

// Recursive doubling: the largest power of two of ranks exchange in pairs; of the others each has a
// partner that works for it.
struct Doubling {
  std::vector<int> pairs;  // in order; nobody for those who have `stands_in`
  int stands_in = -1;      // who works for this rank
  int stands_in_for = -1;  // for whom this rank works

  std::vector<int> Neighbours() const;
};
Doubling RecursiveDoubling(int rank, int size);

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_NEIGHBOURS_H_
