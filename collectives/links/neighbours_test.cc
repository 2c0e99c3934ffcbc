#include "collectives/links/neighbours.h"

#include <functional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives::links {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kLargest = 70;

using NeighboursOf = std::function<std::vector<int>(int rank, int size)>;

const std::vector<NeighboursOf> kAll = {
    RingNeighbours,
    StepNeighbours,
    [](int rank, int size) { return BinomialTree(rank, size, 0).Neighbours(); },
    [](int rank, int size) { return BinomialTree(rank, size, size / 3).Neighbours(); },
    [](int rank, int size) { return RecursiveDoubling(rank, size).Neighbours(); },
};

// Otherwise two ranks would wait for each other.
TEST(NeighboursTest, AreSymmetric) {
  for (const NeighboursOf& neighbours_of : kAll) {
    for (int size = 2; size <= kLargest; ++size) {
      for (int rank = 0; rank < size; ++rank) {
        for (const int other : neighbours_of(rank, size)) {
          ASSERT_NE(other, rank) << size;
          EXPECT_THAT(neighbours_of(other, size), testing::Contains(rank)) << other << " " << size;
        }
      }
    }
  }
}

TEST(NeighboursTest, AllTogetherAreFew) {
  for (int size = 2; size <= kLargest; ++size) {
    int steps = 0;
    while (1 << steps < size) ++steps;
    for (int rank = 0; rank < size; ++rank) {
      std::set<int> together;
      for (const NeighboursOf& neighbours_of : kAll) {
        for (const int other : neighbours_of(rank, size)) together.insert(other);
      }
      EXPECT_LE(together.size(), static_cast<size_t>(2 * steps)) << rank << " of " << size;
    }
  }
}

TEST(NeighboursTest, BinomialTree_ReachesEveryone) {
  for (int size = 1; size <= kLargest; ++size) {
    for (const int root : {0, size / 2, size - 1}) {
      std::vector<int> reached = {root};
      for (size_t i = 0; i < reached.size(); ++i) {
        const Tree tree = BinomialTree(reached[i], size, root);
        int below = 1;
        for (const int child : tree.children) below += BinomialTree(child, size, root).below;
        EXPECT_EQ(tree.below, below);
        for (const int child : tree.children) {
          EXPECT_EQ(BinomialTree(child, size, root).parent, reached[i]);
          reached.push_back(child);
        }
      }
      EXPECT_EQ(reached.size(), static_cast<size_t>(size));
      EXPECT_EQ(std::set<int>(reached.begin(), reached.end()).size(), reached.size());
    }
  }
}

TEST(NeighboursTest, RecursiveDoubling_OfSix) {
  EXPECT_THAT(RecursiveDoubling(1, 6).pairs, ElementsAre(0, 3));
  EXPECT_EQ(RecursiveDoubling(1, 6).stands_in_for, 5);
  EXPECT_EQ(RecursiveDoubling(2, 6).stands_in_for, -1);
  EXPECT_EQ(RecursiveDoubling(5, 6).stands_in, 1);
  EXPECT_THAT(RecursiveDoubling(5, 6).pairs, IsEmpty());
}

}  // namespace
}  // namespace hvd::collectives::links
