// The communication neighbours of a rank in the algorithms of large groups. Pure.
//
// All are symmetric: a rank is among its neighbours' neighbours. All lie 2^k ranks away (modulo the
// group's size), so that several algorithms together need at most 2 log2(size) neighbours, rounded
// up.
#ifndef COLLECTIVES_GLOO_NEIGHBOURS_H_
#define COLLECTIVES_GLOO_NEIGHBOURS_H_

#include <vector>

namespace hvd::collectives::gloo {

// The next rank and the one before.
std::vector<int> RingNeighbours(int rank, int size);

// The ranks 1, 2, 4, ... before and after: every rank is reached in log2(size) steps.
std::vector<int> StepNeighbours(int rank, int size);

// The binomial tree with the root `root`: its nodes have at most log2(size) children, and two on
// average.
struct Tree {
  int parent = -1;            // none: this is the root
  std::vector<int> children;  // the child with the largest subtree first
  // The size of this rank's subtree, itself included: the ranks from this one on, modulo the size.
  int below = 1;

  std::vector<int> Neighbours() const;
};
Tree BinomialTree(int rank, int size, int root);

// Recursive doubling: the largest power of two of ranks exchange in pairs; each of the others has a
// partner that works for it.
struct Doubling {
  std::vector<int> pairs;  // in order; empty for a rank with `stands_in`
  int stands_in = -1;      // the rank that works for this one
  int stands_in_for = -1;  // the rank for which this one works

  std::vector<int> Neighbours() const;
};
Doubling RecursiveDoubling(int rank, int size);

}  // namespace hvd::collectives::gloo

#endif  // COLLECTIVES_GLOO_NEIGHBOURS_H_
