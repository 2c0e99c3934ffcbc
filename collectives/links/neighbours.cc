#include "collectives/links/neighbours.h"

#include <algorithm>

namespace hvd::collectives::links {

std::vector<int> RingNeighbours(int rank, int size) {
  return {(rank + 1) % size, (rank - 1 + size) % size};
}

std::vector<int> StepNeighbours(int rank, int size) {
  std::vector<int> neighbours;
  for (int distance = 1; distance < size; distance *= 2) {
    neighbours.push_back((rank + distance) % size);
    neighbours.push_back((rank - distance + size) % size);
  }
  return neighbours;
}

std::vector<int> Tree::Neighbours() const {
  std::vector<int> neighbours = children;
  if (parent >= 0) neighbours.push_back(parent);
  return neighbours;
}

Tree BinomialTree(int rank, int size, int root) {
  // Ranks are renumbered so that the root is place 0. The parent of a place is the place without
  // the lowest bit that is set, and that bit's value is the size of a full subtree. The children
  // differ from this place by one lower bit.
  const int place = (rank - root + size) % size;
  Tree tree;
  int below = 1;  // the size of a full subtree of this place
  while (below < size && (place & below) == 0) below *= 2;
  if (place != 0) tree.parent = (place - below + root) % size;
  tree.below = std::min(below, size - place);
  for (int distance = below / 2; distance > 0; distance /= 2) {
    if (place + distance < size) tree.children.push_back((place + distance + root) % size);
  }
  return tree;
}

std::vector<int> Doubling::Neighbours() const {
  std::vector<int> neighbours = pairs;
  for (const int other : {stands_in, stands_in_for}) {
    if (other >= 0) neighbours.push_back(other);
  }
  return neighbours;
}

Doubling RecursiveDoubling(int rank, int size) {
  int pairing = 1;  // the number of ranks that exchange in pairs
  while (pairing * 2 <= size) pairing *= 2;
  Doubling doubling;
  if (rank >= pairing) {
    doubling.stands_in = rank - pairing;
    return doubling;
  }
  if (rank + pairing < size) doubling.stands_in_for = rank + pairing;
  for (int distance = 1; distance < pairing; distance *= 2) {
    doubling.pairs.push_back(rank ^ distance);
  }
  return doubling;
}

}  // namespace hvd::collectives::links
