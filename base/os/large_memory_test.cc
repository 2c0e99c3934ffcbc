#include "base/os/large_memory.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace hvd::os {
namespace {

// The flags of the mapping that `address` is in, as the kernel writes them: "rd wr ... hg".
std::string FlagsOf(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_in = false;
  for (std::string line; std::getline(maps, line);) {
    const std::pair<std::string, std::string> range =
        absl::StrSplit(line.substr(0, line.find(' ')), absl::MaxSplits('-', 1));
    uintptr_t begin = 0, end = 0;
    if (absl::SimpleHexAtoi(range.first, &begin) && absl::SimpleHexAtoi(range.second, &end)) {
      const auto at = reinterpret_cast<uintptr_t>(address);
      is_in = begin <= at && at < end;
    }
    if (is_in && absl::StartsWith(line, "VmFlags:")) return line;
  }
  return "";
}

TEST(LargeMemoryTest, Allocate_AnySize_CanBeWritten) {
  for (const size_t bytes : {0u, 1u, 1000u, 5000000u}) {
    const LargeMemory memory = AllocateLargeMemory(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % 64, 0u);
    memset(memory.get(), 1, bytes);
  }
}

TEST(LargeMemoryTest, Allocate_MoreThanThereIs_GivesNone) {
  EXPECT_EQ(AllocateLargeMemory(size_t{1} << 60), nullptr);
}

TEST(LargeMemoryTest, Allocate_Much_AsksForHugePages) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good()) {
    GTEST_SKIP() << "this kernel has no huge pages";
  }
  const LargeMemory memory = AllocateLargeMemory(size_t{40} << 20);
  EXPECT_TRUE(absl::StrContains(FlagsOf(memory.get()), " hg")) << FlagsOf(memory.get());
}

}  // namespace
}  // namespace hvd::os
