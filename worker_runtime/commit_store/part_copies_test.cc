#include "worker_runtime/commit_store/part_copies.h"

#include <random>
#include <string>

#include "base/crc32c.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::commit_store {
namespace {

std::string RandomText(size_t size, std::mt19937& random) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// One after the other, as a commit is defined.
std::string Whole(absl::Span<const std::string> parts) {
  std::string whole;
  for (const std::string& part : parts) {
    whole.resize((whole.size() + kPartAlignment - 1) / kPartAlignment * kPartAlignment);
    whole += part;
  }
  return whole;
}

TEST(PartCopiesTest, Run_AnySizesAndThreads_CopiesAndChecksums) {
  std::mt19937 random(7);
  ThreadTeam team;
  for (const std::vector<size_t>& sizes :
       std::vector<std::vector<size_t>>{{},
                                        {0},
                                        {1},
                                        {0, 1, 0, 63, 64, 65},
                                        {4'000'000},
                                        {1, 3'000'001, 5, 524288, 524289, 7}}) {
    std::vector<std::string> parts;
    for (const size_t size : sizes) parts.push_back(RandomText(size, random));
    const std::string expected = Whole(parts);
    for (const int threads : {1, 4}) {
      alignas(64) static char memory[(8 << 20) + 1];
      memory[expected.size()] = '!';
      PartCopies copies(memory, 0, 0);
      PartCopies checksums(nullptr, 0, 0);
      for (const std::string& part : parts) copies.Add(part), checksums.Add(part);
      EXPECT_EQ(copies.Run(team, threads), Crc32c(expected));
      EXPECT_EQ(checksums.Run(team, threads), Crc32c(expected));
      EXPECT_EQ(copies.end(), expected.size());
      EXPECT_TRUE(absl::string_view(memory, expected.size()) == expected);
      EXPECT_EQ(memory[expected.size()], '!') << "written beyond the end";
    }
  }
}

TEST(PartCopiesTest, Run_BehindEarlierParts_ContinuesThem) {
  ThreadTeam team;
  alignas(64) char memory[256] = "before";
  PartCopies copies(memory, 6, Crc32c("before"));
  copies.Add("after");
  const uint32_t checksum = copies.Run(team, 2);
  EXPECT_EQ(absl::string_view(memory, copies.end()), Whole({"before", "after"}));
  EXPECT_EQ(checksum, Crc32c(Whole({"before", "after"})));
}

}  // namespace
}  // namespace hvd::worker_runtime::commit_store
