#include "collectives/nccl/part_layout.h"

#include <numeric>

#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

size_t Sum(const std::vector<size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}

// Every element is in one slice, slices are in order, and no part is larger than MostBytes.
void ExpectDivides(const std::vector<size_t>& counts, size_t unit, size_t part_bytes) {
  const PartLayout layout(counts, unit, part_bytes);
  std::vector<size_t> next(counts.size(), 0);
  for (size_t part = 0; part < layout.parts(); ++part) {
    const std::vector<PartLayout::Slice> slices = layout.Slices(part);
    ASSERT_EQ(slices.size(), counts.size());
    size_t block = 0, packed = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      EXPECT_EQ(slices[i].whole, block + next[i]);
      EXPECT_EQ(slices[i].packed, packed);
      next[i] += slices[i].count;
      packed += slices[i].count;
      block += counts[i];
    }
    EXPECT_EQ(Sum(CountsOf(slices)), packed);
    EXPECT_LE(packed * unit, PartLayout::MostBytes(part_bytes, counts.size()));
  }
  EXPECT_EQ(next, counts);
}

TEST(PartLayoutTest, CoversEveryElementOnce) {
  for (const size_t unit : {1, 2, 8}) {
    for (const std::vector<size_t>& counts : std::vector<std::vector<size_t>>{
             {0}, {1}, {5000}, {5001, 4999}, {0, 100000, 0}, {1, 2, 3}, {70000, 1, 0, 333}}) {
      ExpectDivides(counts, unit, 4096);
    }
  }
}

TEST(PartLayoutTest, WhatFitsIsOnePart) {
  EXPECT_EQ(PartLayout({0}, 4, 4096).parts(), 1u);
  EXPECT_EQ(PartLayout({1024}, 4, 4096).parts(), 1u);
  EXPECT_EQ(PartLayout({1025}, 4, 4096).parts(), 2u);
  EXPECT_EQ(PartLayout({1024, 1024}, 4, 4096).parts(), 2u);
}

TEST(PartLayoutTest, PartsAreOfSimilarSize) {
  const PartLayout layout({1025}, 4, 4096);
  EXPECT_EQ(layout.Slices(0)[0].count, 512u);
  EXPECT_EQ(layout.Slices(1)[0].count, 513u);
}

TEST(PartLayoutTest, UnevenBlocksAreDividedInProportion) {
  const PartLayout layout({4096, 0, 64}, 1, 2080);
  EXPECT_EQ(CountsOf(layout.Slices(0)), std::vector<size_t>({2048, 0, 0}));
  EXPECT_EQ(CountsOf(layout.Slices(1)), std::vector<size_t>({2048, 0, 64}));
}

}  // namespace
}  // namespace hvd::collectives::nccl
