// The communication neighbours of a rank in the algorithms of large groups. Pure.
//
// The relations are symmetric: a rank is a neighbour of its neighbours. All neighbours are 2^k
// ranks away (modulo the group's size), so that all algorithms together need at most 2 log2(size)
// neighbours, rounded up.
#ifndef COLLECTIVES_LINKS_NEIGHBOURS_H_
#define COLLECTIVES_LINKS_NEIGHBOURS_H_

#include <vector>

namespace hvd::collectives::links {

// The next rank and the previous one.
std::vector<int> RingNeighbours(int rank, int size);

// The ranks 1, 2, 4, ... before and after: every rank is reached in log2(size) steps.
std::vector<int> StepNeighbours(int rank, int size);

// The binomial tree with the root `root`: its nodes have at most log2(size) children, and two on
// average.
struct Tree {
  int parent = -1;            // -1: this rank is the root
  std::vector<int> children;  // the child with the largest subtree first
  // The number of ranks in this rank's subtree, itself included. They are this rank and those that
  // follow it, modulo the size.
  int below = 1;

  std::vector<int> Neighbours() const;
};
Tree BinomialTree(int rank, int size, int root);

// Recursive doubling: the first 2^k ranks, as many as there are, exchange in pairs. Each of the
// others gives its data to one of them, which returns the result.
struct Doubling {
  std::vector<int> pairs;  // in the order of the exchanges; empty for a rank with `stands_in`
  int stands_in = -1;      // the rank that works for this one
  int stands_in_for = -1;  // the rank for which this one works

  std::vector<int> Neighbours() const;
};
Doubling RecursiveDoubling(int rank, int size);

}  // namespace hvd::collectives::links

#endif  // COLLECTIVES_LINKS_NEIGHBOURS_H_
