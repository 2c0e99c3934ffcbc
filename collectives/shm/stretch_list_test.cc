#include "collectives/shm/stretch_list.h"

#include <vector>

#include "gtest/gtest.h"

namespace hvd::collectives::shm {
namespace {

using Parts = std::vector<std::vector<size_t>>;

// What lies from `begin` to `end`, as (place in `memory`, offset, bytes).
Parts Visited(const StretchList& list, const char* memory, size_t begin, size_t end) {
  Parts parts;
  list.ForEach(begin, end, [&](const char* data, size_t offset, size_t bytes) {
    parts.push_back({static_cast<size_t>(data - memory), offset, bytes});
  });
  return parts;
}

TEST(StretchListTest, ForEach_LeavesGapsAndSkipsEmptyOnes) {
  std::vector<char> memory(1000);
  const std::vector<Stretch> stretches = {
      {&memory[500], 10}, {nullptr, 0}, {&memory[0], 130}, {&memory[300], 1}};
  const StretchList list(stretches);
  EXPECT_EQ(list.bytes(), 64 + 192 + 1u);
  EXPECT_EQ(Visited(list, memory.data(), 0, 257),
            (Parts{{500, 0, 10}, {0, 64, 130}, {300, 256, 1}}));
  EXPECT_EQ(Visited(list, memory.data(), 128, 256), (Parts{{64, 0, 66}}));
  EXPECT_EQ(Visited(list, memory.data(), 5, 65), (Parts{{505, 0, 5}, {0, 59, 1}}));
  EXPECT_TRUE(Visited(list, memory.data(), 194, 256).empty()) << "nothing but a gap";
  EXPECT_TRUE(Visited(list, memory.data(), 257, 300).empty());
}

TEST(StretchListTest, ForEach_NoStretches) {
  const StretchList list({});
  EXPECT_EQ(list.bytes(), 0u);
  list.ForEach(0, 10, [](char*, size_t, size_t) { FAIL(); });
}

}  // namespace
}  // namespace hvd::collectives::shm
