#include "collectives/piece_list.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace hvd::collectives {
namespace {

// The stretches that make up [begin, end), as (first element, offset, count).
std::vector<std::vector<size_t>> Stretches(const PieceList& list, const int* memory, size_t begin,
                                           size_t end) {
  std::vector<std::vector<size_t>> found;
  list.ForEach(begin, end, [&](const char* in, char*, size_t offset, size_t count) {
    const auto first = static_cast<size_t>(reinterpret_cast<const int*>(in) - memory);
    found.push_back({first, offset, count});
  });
  return found;
}

TEST(PieceListTest, ForEach_CrossesPiecesAndSkipsEmptyOnes) {
  std::vector<int> memory(100);
  const std::vector<Piece> pieces = {
      {&memory[0], &memory[0], 3}, {&memory[50], &memory[50], 0}, {&memory[10], &memory[10], 5}};
  const PieceList list(pieces, sizeof(int));
  EXPECT_EQ(list.count(), 8u);
  using All = std::vector<std::vector<size_t>>;
  EXPECT_EQ(Stretches(list, memory.data(), 0, 8), (All{{0, 0, 3}, {10, 12, 5}}));
  EXPECT_EQ(Stretches(list, memory.data(), 2, 5), (All{{2, 0, 1}, {10, 4, 2}}));
  EXPECT_EQ(Stretches(list, memory.data(), 3, 4), (All{{10, 0, 1}}));
  EXPECT_EQ(Stretches(list, memory.data(), 7, 8), (All{{14, 0, 1}}));
  EXPECT_TRUE(Stretches(list, memory.data(), 8, 8).empty());
  EXPECT_TRUE(Stretches(list, memory.data(), 9, 8).empty());
}

TEST(PieceListTest, ForEach_NoPieces) {
  const PieceList list({}, 4);
  EXPECT_EQ(list.count(), 0u);
  list.ForEach(0, 0, [](const char*, char*, size_t, size_t) { FAIL(); });
}

}  // namespace
}  // namespace hvd::collectives
