#include "base/crc32c.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace hvd {
namespace {

using internal::Crc32cKernel;

// The test vectors of RFC 3720, B.4, and the usual check value.
TEST(Crc32cTest, KnownValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(ExtendCrc32c(Crc32c("1234"), "56789"), 0xE3069283u);
}

TEST(Crc32cTest, Join_IsTheChecksumOfTheWhole) {
  std::mt19937 random(5);
  std::string text(100000, '\0');
  for (char& c : text) c = static_cast<char>(random());
  const absl::string_view all(text);
  for (const size_t cut : {0, 1, 2, 63, 64, 65, 4096, 77777, 99999, 100000}) {
    const absl::string_view rest = all.substr(cut);
    EXPECT_EQ(JoinCrc32c(Crc32c(all.substr(0, cut)), Crc32c(rest), rest.size()), Crc32c(all))
        << cut;
  }
  EXPECT_EQ(JoinCrc32c(Crc32c("1234"), Crc32c("56789"), 5), 0xE3069283u);
}

TEST(Crc32cTest, Kernels_AllLengths_AgreeAndCopy) {
  std::mt19937 random(3);
  std::string text(3000, '\0');
  for (char& c : text) c = static_cast<char>(random());
  alignas(64) char copy[3000 + 1];
  for (size_t size = 0; size < text.size(); size += 1 + random() % 7) {
    const absl::string_view data(text.data() + random() % (text.size() - size + 1), size);
    const auto before = static_cast<uint32_t>(random());
    const uint32_t expected = internal::RunCrc32c(Crc32cKernel::kPortable, before, nullptr, data);
    for (const Crc32cKernel kernel :
         {Crc32cKernel::kPortable, Crc32cKernel::kClmul128, Crc32cKernel::kClmul512}) {
      if (!internal::Supports(kernel)) continue;
      EXPECT_EQ(internal::RunCrc32c(kernel, before, nullptr, data), expected) << size;
      copy[size] = '!';
      EXPECT_EQ(internal::RunCrc32c(kernel, before, copy, data), expected) << size;
      EXPECT_EQ(absl::string_view(copy, size), data);
      EXPECT_EQ(copy[size], '!') << "written beyond the end";
    }
  }
}

}  // namespace
}  // namespace hvd
