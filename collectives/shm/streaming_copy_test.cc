#include "collectives/shm/streaming_copy.h"

#include <vector>

#include "gtest/gtest.h"

namespace hvd::collectives::shm {
namespace {

// Every alignment, and sizes around a cache line's; what lies beside must not be touched.
TEST(StreamingCopyTest, Copy_ExactlyTheBytesThatWereAskedFor) {
  std::vector<char> source(1024);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 31 + 1);
  for (const CopyFunction copy : {PlainCopy, StreamingCopy}) {
    for (size_t to = 0; to < 70; ++to) {
      for (const size_t bytes : {0, 1, 31, 63, 64, 65, 128, 200, 500}) {
        std::vector<char> target(1024, 'u'), expected = target;
        std::copy(source.begin() + 3, source.begin() + 3 + bytes, expected.begin() + to);
        copy(target.data() + to, source.data() + 3, bytes);
        ASSERT_EQ(target, expected) << to << " " << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace hvd::collectives::shm
