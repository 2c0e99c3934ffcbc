// ExpandHostlist against Slurm's own `scontrol show hostnames`, with random lists.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "launcher/allocation/hostlist.h"

namespace hvd::launcher::allocation {
namespace {

constexpr int kLists = 10'000;
constexpr int kListsAtOnce = 100;
constexpr char kBetween[] = "between";

// Random lists that Slurm accepts: with no, one or several bracket groups in a name, zero padding,
// single numbers.
class RandomLists {
 public:
  explicit RandomLists(unsigned seed) : random_(seed) {}

  std::string List() {
    std::vector<std::string> entries;
    for (int left = Below(4) + 1; left > 0; --left) entries.push_back(Name());
    return absl::StrJoin(entries, ",");
  }

 private:
  int Below(int bound) { return static_cast<int>(random_() % bound); }

  std::string Text() {
    static constexpr std::array<const char*, 9> kTexts = {"a",  "node", "gpu-", "r",      "x_y",
                                                          "n0", "c12n", "b.q",  "rack-7-"};
    return kTexts[Below(kTexts.size())];
  }

  std::string Range() {
    const int low = Below(Below(2) == 0 ? 12 : 1100);
    const int width = Below(3) == 0 ? Below(5) + 1 : 1;
    const std::string from = absl::StrFormat("%0*d", width, low);
    if (Below(2) == 0) return from;
    return absl::StrFormat("%s-%0*d", from, width, low + Below(5));
  }

  std::string Bracket() {
    std::vector<std::string> ranges;
    for (int left = Below(3) + 1; left > 0; --left) ranges.push_back(Range());
    return absl::StrCat("[", absl::StrJoin(ranges, ","), "]");
  }

  std::string Name() {
    std::string name = Text();
    for (int left = Below(5); left > 0; --left) {
      name += Bracket();
      if (left > 1 && Below(4) > 0) name += Text();
    }
    return name;
  }

  std::mt19937 random_;
};

// The output of scontrol for each of the lists.
std::vector<std::string> AskSlurm(const std::vector<std::string>& lists) {
  const std::string all = absl::StrJoin(lists, absl::StrCat(",", kBetween, ","));
  const std::string command = absl::StrCat("scontrol show hostnames '", all, "'");
  std::FILE* const pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return absl::StrSplit(absl::StrCat("\n", text), absl::StrCat("\n", kBetween, "\n"));
}

TEST(HostlistScontrolTest, RandomLists_ExpandAsSlurmExpandsThem) {
  if (std::system("command -v scontrol >/dev/null") != 0) GTEST_SKIP() << "no Slurm here";
  const std::string config = absl::StrCat(testing::TempDir(), "/slurm.conf");
  std::ofstream(config) << "ClusterName=test\nSlurmctldHost=localhost\n";
  setenv("SLURM_CONF", config.c_str(), 1);
  const unsigned seed = std::random_device()();
  RandomLists random(seed);
  for (int done = 0; done < kLists; done += kListsAtOnce) {
    std::vector<std::string> lists;
    for (int i = 0; i < kListsAtOnce; ++i) lists.push_back(random.List());
    const std::vector<std::string> expected = AskSlurm(lists);
    ASSERT_EQ(expected.size(), lists.size()) << "seed " << seed;
    for (int i = 0; i < kListsAtOnce; ++i) {
      const auto hosts = ExpandHostlist(lists[i]);
      ASSERT_TRUE(hosts.ok()) << hosts.status() << ", seed " << seed;
      const std::vector<std::string> theirs = absl::StrSplit(expected[i], '\n', absl::SkipEmpty());
      ASSERT_EQ(*hosts, theirs) << lists[i] << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace hvd::launcher::allocation
