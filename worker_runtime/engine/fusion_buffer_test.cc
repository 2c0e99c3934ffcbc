#include "worker_runtime/engine/fusion_buffer.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace hvd::worker_runtime::engine {
namespace {

TEST(FusionBufferTest, Reserve_GrowsAlignedAndNeverShrinks) {
  FusionBuffer buffer;
  char* large = *buffer.Reserve(1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 64, 0u);
  EXPECT_EQ(*buffer.Reserve(10), large);
  std::memset(*buffer.Reserve(5000), 1, 5000);
}

TEST(FusionBufferTest, Unpack_CopiesPieceByPieceAndSkipsTheAbsent) {
  FusionBuffer buffer;
  std::memcpy(*buffer.Reserve(6), "abcdef", 6);
  std::string first(2, '-'), last(3, '-');
  buffer.Unpack({collectives::Stretch{&first[0], 2}, collectives::Stretch{nullptr, 1},
                 collectives::Stretch{nullptr, 0}, collectives::Stretch{&last[0], 3}});
  EXPECT_EQ(first, "ab");
  EXPECT_EQ(last, "def");
}

}  // namespace
}  // namespace hvd::worker_runtime::engine
